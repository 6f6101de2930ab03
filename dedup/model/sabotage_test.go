package model

import (
	"time"

	"sip2gate/dedup"
)

// duration is a number of ticks as a factor.
type duration = time.Duration

// This file stands between the bridge and the gate. As it is, each function
// only calls; with a rule taken away (appliance.without), it undoes what that
// rule does. The gate itself knows no such switch.
const (
	verifying     = "verify"                            // V1
	startSettle   = "settle from the start"             // V5
	tokens        = "token"                             // V7
	markFirst     = "mark before a checkin"             // V11a
	holding       = "hold after an unanswered checkin"  // V11c
	othersWait    = "another patron waits"              // V12
	delivered     = "delivered or not"                  // V2
	begunAfter    = "a read begun after the arrival"    // 5E
	abort         = "abort"                             // V4; see world
	amnesiaSettle = "amnesia: a negative read can wait" // V6

)

// admit asks for the verdict.
func (a *appliance) admit(w *worker) dedup.Verdict {
	subject := a.gate.Keys().Identify(w.Req.Scope, w.Req.Subject, w.Req.Object, nil).Subject
	if a.without == othersWait {
		a.disk.hidden = func(r dedup.Record) bool {
			return r.Subject != subject && r.State != dedup.Completed
		}
		defer func() { a.disk.hidden = nil }()
	}
	if a.without == amnesiaSettle && w.Req.Blind.Result == dedup.Absent {
		w.Req.Blind.Begun += (ilsTimeout + settle) * tick
	}
	v, err := a.gate.Admit(background, w.Req)
	must(err)
	if a.without == verifying && v.Decision == dedup.Verify {
		v.Decision = dedup.Replay
	}
	return v
}

// settle hands the outcome of a read to the gate.
func (a *appliance) settle(w *worker, rd dedup.Reading) (dedup.Settled, dedup.Record) {
	seen := w.Seen
	if a.without == startSettle {
		if rd.Begun >= seen.ClaimedAt+settle*tick {
			rd.Begun += (ilsTimeout + settle) * tick
		}
	}
	did, now, err := a.gate.Settle(background, seen, rd)
	must(err)
	if did == dedup.SettledLent {
		a.completed(now)
	}
	if a.without == begunAfter && rd.Result == dedup.Charged {
		for _, other := range a.workers {
			if other.Req != nil && other.Patron == w.Patron {
				other.Req.Read, other.Req.Begun, other.Req.Token = rd.Result, a.clock.Now(), now.Token
			}
		}
	}
	return did, now
}

// completed is called when a checkout has been completed, before anybody gets
// the answer.
func (a *appliance) completed(rec dedup.Record) {
	if a.without == delivered {
		a.gate.Delivered(background, rec)
	}
}

func (a *appliance) beginChange(w *worker) {
	if a.without == markFirst {
		return
	}
	c, err := a.gate.BeginChange(background, []byte("book"))
	must(err)
	w.Change = c
	if a.without == tokens {
		w.tokens = map[dedup.Digest]dedup.Token{}
		for r := range a.disk.All() {
			w.tokens[r.Key] = r.Token
		}
	}
}

func (a *appliance) ended(w *worker, e dedup.Ending) {
	if w.Change == nil { // it was not marked before it left
		c, err := a.gate.BeginChange(background, []byte("book"))
		must(err)
		w.Change = c
	}
	if a.without == holding && e == dedup.Unanswered {
		e = dedup.NotDone
	}
	if a.without == tokens {
		a.disk.alias = w.tokens
	}
	w.Change.End(background, e)
	w.Change, w.tokens, a.disk.alias = nil, nil, nil
}

var subjects = map[dedup.Digest]patron{}

func init() {
	keys := dedup.NewKeyer(secret, false)
	for p := patron(1); p <= 2; p++ {
		r := request(p)
		id := keys.Identify(r.Scope, r.Subject, r.Object, nil)
		subjects[id.Subject] = p
		for i, d := range []dedup.Digest{id.Key, id.Subject, id.Object} {
			var n uint64
			for _, b := range d[:8] {
				n = n<<8 | uint64(b)
			}
			fixedNames[n] = byte(1 + 2*i + int(p-1))
		}
	}
}

// holderOf is the patron whose checkout a record is about.
func holderOf(r *dedup.Record) patron { return subjects[r.Subject] }
