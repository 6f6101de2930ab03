package dedup

import (
	"encoding/hex"
	"time"
)

// Digest is a keyed or plain SHA-256 value. Nothing that identifies a patron
// can be read out of one without the secret.
type Digest [32]byte

// String is the digest in lower-case hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Token names one claim. Whoever completes, releases, doubts, settles or ends
// a record names the token that he saw; with another token nothing is done.
type Token [16]byte

// State is how far a transaction has come.
type State uint8

const (
	// Claimed: the request may be on its way. A Claimed record that is found
	// at start-up, or whose exchange ended without an answer, is in doubt.
	Claimed State = iota + 1
	// Doubtful: the request left, and nobody knows what became of it.
	Doubtful
	// Completed: the ILS has carried the request out; Answer is what it said.
	Completed
)

// String is the state's name as logs and staff lists print it.
func (s State) String() string {
	switch s {
	case Claimed:
		return "claimed"
	case Doubtful:
		return "in doubt"
	case Completed:
		return "completed"
	}
	return "unknown"
}

// Record is what the gate keeps of one transaction. Records are values: a
// store hands out copies, and the byte slices in them are never written to
// after the record has been handed over. All times but Since are gate time.
type Record struct {
	Key     Digest // of the transaction
	Pair    Digest // the key without its sequence: equal to Key in "ignore" mode
	Object  Digest // of the item alone, whatever the institution: the index
	Subject Digest // of the patron alone
	Token   Token
	Under   uint32 // the secret of these digests (Keyer.Name); 0: not known
	Rev     uint64 // set by the store; one higher at each change

	State     State
	Marked    bool // verify by a read before answering from memory
	Delivered bool // some station was given the ok=1 answer
	Partial   bool // only Compared[0] was given (an offline upload)

	Compared []Digest // what must be equal in a repeat, in order
	Target   Digest   // which ILS the request went to

	Station string // the configured name of the station that claimed it
	Scope   string // institution, for staff and log
	Label   string // item as staff read it

	ClaimedAt   time.Duration
	TouchedAt   time.Duration // newest transmission or delivery
	CompletedAt time.Duration // 0 until completed
	Expires     time.Duration // 0: never by itself
	Since       int64         // wall clock at the claim in Unix seconds, for staff; 0 if unknown

	Request []byte // sealed: what is needed to settle a doubt; nil once erased
	Answer  []byte // sealed: the stored answer; nil until completed
}

// Expired reports whether the record has ended by age at gate time now.
func (r *Record) Expired(now time.Duration) bool {
	return r.Expires != 0 && now >= r.Expires
}
