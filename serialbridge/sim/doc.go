// Package sim plays the two ends of a SIP2 line and the wire between them, for
// tests, the demonstration, the bench and the ils-sim command:
//
//   - [ILS] is a library system on a real TCP port, with personas (what Koha,
//     FOLIO or a system without any protection do with a second Checkout),
//     faults that can be set while it runs, and a journal of every frame and
//     every loan;
//   - [Kiosk] is a self-check station on any line;
//   - [Relay] is a plain byte pipe: life without the gate.
//
// The journal written to a file holds no patron barcode, PIN, name or title;
// those stay in memory, where tests may look at them.
package sim
