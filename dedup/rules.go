package dedup

import "time"

// This file is the verdict table: pure functions of what is known, with no
// store, no lock and no clock, so that a model can drive the same code.

// ReadResult is what a read at the ILS showed of one transaction.
type ReadResult uint8

const (
	// NotRead: nobody has asked.
	NotRead ReadResult = iota
	// Charged: the object is on loan to this subject.
	Charged
	// Absent: proved not to be.
	Absent
	// Unreadable: the ILS could not be asked, or its answer proves nothing.
	Unreadable
)

// String is the result as logs print it.
func (r ReadResult) String() string {
	switch r {
	case Charged:
		return "charged"
	case Absent:
		return "absent"
	case Unreadable:
		return "unknown"
	}
	return "not read"
}

// Decision is what is to be done with a transmission.
type Decision uint8

const (
	// Claim: new work. Claim it durably, then forward it.
	Claim Decision = iota + 1
	// Join: the machine's own repeat of what is in flight. The one answer
	// goes to the newest transmission.
	Join
	// Wait for the item to change (an outcome, an end of a hold), then
	// decide again.
	Wait
	// Replay the stored answer.
	Replay
	// ReplayUnverified: the stored answer, though it could not be verified.
	ReplayUnverified
	// Verify the completed record by a read, then decide again.
	Verify
	// Settle the doubt by a read, then decide again.
	Settle
	// Conflict: not the same request. Refuse it.
	Conflict
	// AskStaff: what is known does not allow an answer. Refuse it and send
	// the patron to the desk.
	AskStaff
	// Look: nothing is known of it, and that may be because it was forgotten,
	// or because it happened elsewhere. Read before it is sent, then decide
	// again.
	Look
	// Adopt: a read shows the loan though nothing is known of it. Keep it as
	// completed with the read's answer, and give that.
	Adopt
)

// Facts is what is known of a transmission when it is judged.
type Facts struct {
	Now    time.Duration // gate time at which the transmission arrived
	Window time.Duration
	Own    bool       // the machine's own repeat
	Same   bool       // fingerprint equal to the record's
	Held   bool       // a change of the item left and was not answered
	Read   ReadResult // of this very record, begun after the transmission arrived

	// What follows counts where there is no record.
	Amnesia bool       // records of before may be missing
	Upload  bool       // it was made while the machine was off line
	Blind   ReadResult // a read of the loan, begun after the transmission arrived
	Proof   bool       // that read was begun late enough for a negative to count
	Mute    bool       // this object's keeper answers no reads at all
}

// Judge is the verdict table for one record of the same key; nil is no record.
func Judge(r *Record, f Facts) Decision {
	if r == nil || r.Expired(f.Now) {
		switch {
		case f.Held:
			return Wait
		case f.Amnesia || f.Upload:
			return judgeUnknown(f)
		}
		return Claim
	}
	switch r.State {
	case Claimed:
		if f.Own && f.Same {
			return Join
		}
		return Wait
	case Doubtful:
		return Settle
	}
	if f.Held {
		return Wait
	}
	if f.Same && f.Own && r.Delivered && !r.Marked {
		return Replay
	}
	switch f.Read {
	case Charged:
		if f.Same {
			return Replay
		}
		return Conflict
	case Unreadable:
		switch {
		case !f.Same:
			return Conflict
		case r.Marked, !r.Delivered && f.Now > r.CompletedAt+f.Window:
			return AskStaff
		}
		return ReplayUnverified
	}
	return Verify
}

// judgeUnknown is for a transmission that must not be taken for new work just
// because nothing is known of it. Where the keeper cannot be read it is sent:
// an upload is never dropped, and after amnesia there is nothing better.
func judgeUnknown(f Facts) Decision {
	switch {
	case f.Mute:
		return Claim
	case f.Blind == Charged:
		return Adopt
	case f.Blind == Absent && (f.Proof || !f.Amnesia),
		f.Blind == Unreadable && !f.Amnesia:
		return Claim
	}
	return Look
}

// SameRequest compares fingerprints. An offline upload often lacks the PIN:
// with one on either side only the first compared value counts, since a false
// conflict would refuse a loan that exists.
func SameRequest(r *Record, compared []Digest, partial bool) bool {
	n := max(len(r.Compared), len(compared))
	if r.Partial || partial {
		n = min(n, 1)
	}
	if len(r.Compared) < n || len(compared) < n {
		return false
	}
	for i := range n {
		if r.Compared[i] != compared[i] {
			return false
		}
	}
	return true
}

// Obstacle says how another record of the same object stands in the way of a
// new claim by subject. negative is the gate time from which a negative read
// of a doubtful record counts. It returns Claim where there is none.
func Obstacle(other *Record, subject Digest, now, negative time.Duration) Decision {
	same := other.Subject == subject
	switch other.State {
	case Claimed:
		return Wait
	case Doubtful:
		if same {
			return Settle
		}
		if now < negative {
			return Wait
		}
	}
	return Claim
}

// Concerned reports whether a change of the object by subject (nil: by
// nobody, as a checkin) puts a completed record in question.
func Concerned(r *Record, subject *Digest) bool {
	return r.State == Completed && (subject == nil || r.Subject != *subject)
}

// SettleDoubt says what a read of a doubtful record leads to: Charged
// completes it, Absent releases it, anything else leaves it. A negative read
// counts only if it was begun from negative on: until then the ILS may still
// carry the request out.
func SettleDoubt(result ReadResult, begun, negative time.Duration) ReadResult {
	if result == Absent && begun < negative {
		return Unreadable
	}
	return result
}

// Lifetime is when a completed record ends by age. The window is for answers
// that somebody got; one that nobody got is kept for the retention.
func Lifetime(r *Record, window, retention time.Duration) time.Duration {
	if r.Delivered {
		return r.TouchedAt + window
	}
	return max(r.CompletedAt+retention, r.TouchedAt+window)
}
