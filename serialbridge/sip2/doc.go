// Package sip2 reads and writes SIP2 (3M Standard Interchange Protocol 2.00)
// at the level of bytes: it cuts a stream into frames, finds a frame's fixed
// part, fields and trailer, and moves a trailer from one sequence number to
// another without touching anything else.
//
// The package is pure. It does no I/O, reads no clock, writes no log and keeps
// no state of its own; it imports the standard library only. Frames are bytes,
// never text: nothing is decoded, so a frame in any character set passes as it
// came.
//
// Reading never fails. Self-check stations and library systems (ILS) deviate
// from the paper in many ways, and a gateway that refuses what an ILS would
// have carried out is worse than none. What could not be read is absent (nil,
// false, [Message.Short]); every byte of a frame belongs to exactly one
// [Segment], so nothing is lost between reading and writing.
//
// A delimiter is a byte that occurs in no value: '|' unless a site has chosen
// another one. It must not be a letter, a digit, a blank or a line end.
package sip2
