package sim

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Snapshot is a consistent look at an [ILS]. It is valid only inside the
// function that it was given to, which must not call the ILS itself.
type Snapshot struct{ ils *ILS }

// Received is the number of frames with this code that were received whole.
func (s Snapshot) Received(code string) int { return s.ils.journal.received[code] }

// Answered is the number of frames with this code that were written whole.
func (s Snapshot) Answered(code string) int { return s.ils.journal.answered[code] }

// Checkouts is the number of 11 frames received for the item.
func (s Snapshot) Checkouts(item string) int { return s.counts(item).checkouts }

// Loans is the number of loans ever opened for the item, renewals not counted.
func (s Snapshot) Loans(item string) int { return s.counts(item).loans }

// Renewals is the number of times that a loan of the item was renewed.
func (s Snapshot) Renewals(item string) int { return s.counts(item).renewals }

// Checkins is the number of Checkins of the item, over SIP2 and at the desk.
func (s Snapshot) Checkins(item string) int { return s.counts(item).checkins }

// OpenLoans is the number of loans of the item that are open now; more than
// one is the incident that the gate is there to prevent.
func (s Snapshot) OpenLoans(item string) int { return len(s.ils.library.byItem[item]) }

// ActiveLoan is the newest open loan of the item, if there is one.
func (s Snapshot) ActiveLoan(item string) (patron string, due time.Time, ok bool) {
	open := s.ils.library.byItem[item]
	if len(open) == 0 {
		return "", time.Time{}, false
	}
	l := open[len(open)-1]
	return l.patron, l.due, true
}

// FeesPaid is the number of payments booked.
func (s Snapshot) FeesPaid() int { return s.ils.journal.fees }

// Connections is the number of connections ever accepted.
func (s Snapshot) Connections() int { return s.ils.journal.conns }

// OpenConnections is the number of connections that are open now.
func (s Snapshot) OpenConnections() int { return s.ils.journal.open }

// Journal is the newest entries, oldest first; the caller must not keep them.
func (s Snapshot) Journal() []Entry { return s.ils.journal.entries }

func (s Snapshot) counts(item string) counts {
	if c := s.ils.journal.items[item]; c != nil {
		return *c
	}
	return counts{}
}

// look runs f under the lock.
func look[T any](l *ILS, f func(Snapshot) T) T {
	l.mu.Lock()
	defer l.mu.Unlock()
	return f(Snapshot{l})
}

// WaitFor returns when ok is true, which it looks at after every change, or
// with the cause of ctx's end.
func (l *ILS) WaitFor(ctx context.Context, ok func(Snapshot) bool) error {
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changed.Broadcast()
	})
	defer stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for !ok(Snapshot{l}) {
		if ctx.Err() != nil {
			return fmt.Errorf("wait for the ILS simulator: %w", context.Cause(ctx))
		}
		l.changed.Wait()
	}
	return nil
}

// Received is [Snapshot.Received] now; so are the methods that follow.
func (l *ILS) Received(code string) int {
	return look(l, func(s Snapshot) int { return s.Received(code) })
}

// Answered is [Snapshot.Answered].
func (l *ILS) Answered(code string) int {
	return look(l, func(s Snapshot) int { return s.Answered(code) })
}

// Checkouts is [Snapshot.Checkouts].
func (l *ILS) Checkouts(item string) int {
	return look(l, func(s Snapshot) int { return s.Checkouts(item) })
}

// Loans is [Snapshot.Loans].
func (l *ILS) Loans(item string) int { return look(l, func(s Snapshot) int { return s.Loans(item) }) }

// OpenLoans is [Snapshot.OpenLoans].
func (l *ILS) OpenLoans(item string) int {
	return look(l, func(s Snapshot) int { return s.OpenLoans(item) })
}

// Renewals is [Snapshot.Renewals].
func (l *ILS) Renewals(item string) int {
	return look(l, func(s Snapshot) int { return s.Renewals(item) })
}

// Checkins is [Snapshot.Checkins].
func (l *ILS) Checkins(item string) int {
	return look(l, func(s Snapshot) int { return s.Checkins(item) })
}

// ActiveLoan is [Snapshot.ActiveLoan].
func (l *ILS) ActiveLoan(item string) (patron string, due time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Snapshot{l}.ActiveLoan(item)
}

// FeesPaid is [Snapshot.FeesPaid].
func (l *ILS) FeesPaid() int { return look(l, Snapshot.FeesPaid) }

// Connections is [Snapshot.Connections].
func (l *ILS) Connections() int { return look(l, Snapshot.Connections) }

// OpenConnections is [Snapshot.OpenConnections].
func (l *ILS) OpenConnections() int { return look(l, Snapshot.OpenConnections) }

// Journal is a copy of the newest entries, oldest first. The frames in it must
// not be changed.
func (l *ILS) Journal() []Entry {
	return look(l, func(s Snapshot) []Entry { return slices.Clone(s.Journal()) })
}

// Frames are the newest frames received, oldest first, without terminators and
// as they came otherwise. They must not be changed.
func (l *ILS) Frames() [][]byte {
	var frames [][]byte
	for _, e := range l.Journal() {
		if e.Event == EventFrame {
			frames = append(frames, e.Raw)
		}
	}
	return frames
}

// ItemsSeen are the items that the journal has totals of, in order.
func (l *ILS) ItemsSeen() []string {
	return look(l, func(s Snapshot) []string {
		var ids []string
		for id := range s.ils.journal.items {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		return ids
	})
}

// JournalError is the first failure to write the journal, if any.
func (l *ILS) JournalError() error {
	return look(l, func(s Snapshot) error { return s.ils.journal.err })
}

// DeskCheckin is staff checking the item in at the desk, not over SIP2. It
// says whether the item was on loan.
func (l *ILS) DeskCheckin(item string) bool {
	return look(l, func(s Snapshot) bool {
		_, lent := s.ils.library.checkin(0, "", item)
		return lent
	})
}

// Lend opens a loan that did not come over SIP2. A zero due date means the
// usual loan period from now.
func (l *ILS) Lend(item, patron string, due time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.library.item(item)
	l.library.patron(patron)
	if due.IsZero() {
		due = l.library.dueDate(l.opts.Clock())
	}
	l.library.lend(0, "", item, patron, due)
}
