package sim

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// What an [Entry] tells.
const (
	EventConnect = "connect" // a connection was accepted
	EventClose   = "close"   // a connection ended
	EventFrame   = "frame"   // a frame was received
	EventBlank   = "blank"   // a line without a frame was received
	EventAnswer  = "answer"  // an answer was written, whole
	EventFault   = "fault"   // a fault was applied to a request
	EventLoan    = "loan"    // a loan was opened
	EventRenewal = "renewal" // a loan was renewed
	EventRefusal = "refusal" // a Checkout or Renew was refused
	EventCheckin = "checkin" // an item came back, lent or not
	EventCancel  = "cancel"  // a loan was undone (BI=Y)
	EventFee     = "fee"     // a payment was booked
)

// Entry is one line of the journal. What names a patron, or may, is kept in
// memory only.
type Entry struct {
	Time   time.Time `json:"time"`
	Event  string    `json:"event"`
	Conn   int       `json:"conn,omitempty"` // connections count from 1; 0 is the desk
	Code   string    `json:"code,omitempty"` // of the frame, or of the request that had this effect
	Seq    string    `json:"ay,omitempty"`   // AY of the frame
	Item   string    `json:"item,omitempty"`
	Loan   int       `json:"loan,omitempty"` // loans count from 1
	Due    time.Time `json:"due,omitzero"`
	Amount string    `json:"amount,omitempty"`
	Why    string    `json:"why,omitempty"`

	Patron string `json:"-"`
	Raw    []byte `json:"-"` // the frame without its terminator
}

// counts are the running totals of one item.
type counts struct{ checkouts, loans, renewals, checkins int }

// journal keeps totals of everything and the newest entries. It is guarded by
// the lock of its ILS.
type journal struct {
	w       io.Writer
	clock   func() time.Time
	keep    int
	err     error // the first failure to write
	entries []Entry

	received, answered map[string]int
	items              map[string]*counts
	fees               int
	conns, open        int
}

func newJournal(w io.Writer, clock func() time.Time, keep int) *journal {
	return &journal{
		w: w, clock: clock, keep: keep,
		received: map[string]int{}, answered: map[string]int{}, items: map[string]*counts{},
	}
}

// add dates and books an entry.
func (j *journal) add(e Entry) {
	e.Time = j.clock()
	j.count(e)
	if len(j.entries) >= 2*j.keep {
		j.entries = slices.Clone(j.entries[len(j.entries)-j.keep:])
	}
	j.entries = append(j.entries, e)
	if j.w == nil || j.err != nil {
		return
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.w.Write(append(line, '\n'))
	}
	if err != nil {
		j.err = fmt.Errorf("write the loan journal: %w", err)
	}
}

func (j *journal) count(e Entry) {
	switch e.Event {
	case EventConnect:
		j.conns++
		j.open++
	case EventClose:
		j.open--
	case EventFrame:
		j.received[e.Code]++
		if e.Code == "11" {
			j.item(e.Item).checkouts++
		}
	case EventAnswer:
		j.answered[e.Code]++
	case EventLoan:
		j.item(e.Item).loans++
	case EventRenewal:
		j.item(e.Item).renewals++
	case EventCheckin:
		j.item(e.Item).checkins++
	case EventFee:
		j.fees++
	}
}

func (j *journal) item(id string) *counts {
	c := j.items[id]
	if c == nil {
		c = new(counts)
		j.items[id] = c
	}
	return c
}
