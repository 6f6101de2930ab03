package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind names a fault.
type Kind string

// Faults of one request.
const (
	Delay       Kind = "delay"        // wait, then carry the request out
	Late        Kind = "late"         // carry it out, wait, then answer
	Lost        Kind = "lost"         // carry it out, answer nothing
	Drop        Kind = "drop"         // neither carry it out nor answer
	CutBefore   Kind = "cut-before"   // end the connection, not carried out
	CutAfter    Kind = "cut-after"    // carry it out, end the connection unanswered
	CutAnswer   Kind = "cut-answer"   // end the connection in the middle of the answer
	Halved      Kind = "halved"       // send the first half of the answer, and no more of it
	Doubled     Kind = "doubled"      // send the answer twice
	BadChecksum Kind = "bad-checksum" // send the answer with a wrong AZ
	OtherAY     Kind = "other-ay"     // send the answer with AY4, or 5 if 4 was asked
	CRLF        Kind = "crlf"         // end the answer in CR LF
	BareResend  Kind = "resend"       // answer 96 instead, not carried out
	Status      Kind = "status"       // answer 98 instead, not carried out
	Text        Kind = "text"         // answer a line of text instead, not carried out
	OtherItem   Kind = "other-item"   // answer in the name of another item
)

// Faults of the line. They need no code, last until [ILS.ClearFaults], and
// leave Times, Delay and Until alone.
const (
	NoAccept  Kind = "no-accept"  // connections complete but are not accepted
	BlackHole Kind = "black-hole" // connections are accepted, nothing is read from any
	Refuse    Kind = "refuse"     // the port is closed; connections there are stay
)

// kinds are all faults in the order in which help names them.
var kinds = []Kind{
	Delay, Late, Lost, Drop, CutBefore, CutAfter, CutAnswer, Halved, Doubled, BadChecksum, OtherAY, CRLF,
	BareResend, Status, Text, OtherItem, NoAccept, BlackHole, Refuse,
}

// Kinds are the names of all faults.
func Kinds() []Kind { return slices.Clone(kinds) }

func (k Kind) ofLine() bool { return k == NoAccept || k == BlackHole || k == Refuse }

// executed says whether a request with this fault is carried out.
func (k Kind) executed() bool {
	switch k {
	case Drop, CutBefore, BareResend, Status, Text:
		return false
	}
	return true
}

// Fault is something that goes wrong. One request meets at most one: the
// oldest that matches it.
type Fault struct {
	Kind Kind
	// Code is the request it applies to, as 11; empty means any.
	Code string
	// Times is how many requests meet it; 0 means all.
	Times int
	// Delay is how long Delay and Late wait.
	Delay time.Duration
	// Until, if not nil, makes Delay and Late wait until it is closed instead.
	Until <-chan struct{}
	// FIN makes the cuts close the connection in order; otherwise it is reset.
	FIN bool
	// Text is what Text sends, and the item that OtherItem names; each has a
	// default.
	Text string
}

// String describes a fault as [ParseFault] reads it.
func (f Fault) String() string {
	parts := []string{string(f.Kind)}
	if !f.Kind.ofLine() {
		parts = append(parts, cmp.Or(f.Code, "any"))
		if f.Times > 0 {
			parts = append(parts, strconv.Itoa(f.Times))
		}
		if f.Delay > 0 {
			parts = append(parts, f.Delay.String())
		}
	}
	return strings.Join(parts, ":")
}

// ParseFault reads KIND:CODE[:TIMES][:DELAY], for example lost:11:1 or
// late:12:3s. CODE is two characters or any; without TIMES (or with all) every
// request meets the fault. The faults of the line are a KIND alone.
func ParseFault(text string) (Fault, error) {
	parts := strings.Split(text, ":")
	f := Fault{Kind: Kind(strings.ToLower(parts[0]))}
	rest := parts[1:]
	if !slices.Contains(kinds, f.Kind) {
		return Fault{}, fmt.Errorf("unknown fault %q: use one of %s", parts[0], join(kinds))
	}
	if f.Kind.ofLine() {
		if len(rest) > 0 {
			return Fault{}, fmt.Errorf("fault %s concerns the whole line: leave out %q", f.Kind, strings.Join(rest, ":"))
		}
		return f, nil
	}
	if len(rest) == 0 {
		return Fault{}, fmt.Errorf("fault %s needs a message code: for example %s:11", f.Kind, f.Kind)
	}
	if f.Code = rest[0]; f.Code == "any" {
		f.Code = ""
	} else if len(f.Code) != 2 {
		return Fault{}, fmt.Errorf("fault %s: %q is not a message code: use two characters, as 11, or any", f.Kind, f.Code)
	}
	for i, p := range rest[1:] {
		if times, err := strconv.Atoi(p); i == 0 && err == nil && times > 0 {
			f.Times = times
		} else if d, err := time.ParseDuration(p); err == nil && d > 0 && i == len(rest)-2 {
			f.Delay = d
		} else if i != 0 || p != "all" {
			return Fault{}, fmt.Errorf("fault %s: %q is neither a number of times nor a delay: use for example %s:11:1 or %s:11:1:500ms",
				f.Kind, p, f.Kind, f.Kind)
		}
	}
	return f, f.check()
}

var errNoDelay = errors.New("says not how long: add a delay, for example late:11:1:3s")

func (f Fault) check() error {
	switch {
	case !slices.Contains(kinds, f.Kind):
		return fmt.Errorf("unknown fault %q: use one of %s", f.Kind, join(kinds))
	case (f.Kind == Delay || f.Kind == Late) && f.Delay <= 0 && f.Until == nil:
		return fmt.Errorf("fault %s %w", f.Kind, errNoDelay)
	}
	return nil
}

func join(kinds []Kind) string {
	var b strings.Builder
	for i, k := range kinds {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(k))
	}
	return b.String()
}

// Fault sets a fault, after those already set. A fault of the line takes
// effect at once.
func (l *ILS) Fault(f Fault) error {
	if err := f.check(); err != nil {
		return err
	}
	switch f.Kind {
	case Refuse:
		return l.StopListening()
	case NoAccept, BlackHole:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.block(f.Kind)
	default:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.faults = append(l.faults, f)
	}
	return nil
}

// ClearFaults ends all faults; a closed port is opened again under its old
// address. A request that already waits for a delay goes on waiting.
func (l *ILS) ClearFaults() error {
	l.mu.Lock()
	l.faults = nil
	l.unblock()
	stopped := l.address != "" && l.listener == nil
	l.mu.Unlock()
	if stopped {
		return l.Listen(l.Addr())
	}
	return nil
}

// Faults are the faults set and not used up, oldest first.
func (l *ILS) Faults() []Fault {
	return look(l, func(s Snapshot) []Fault {
		set := slices.Clone(s.ils.faults)
		if s.ils.noAccept {
			set = append(set, Fault{Kind: NoAccept})
		}
		if s.ils.blackHole {
			set = append(set, Fault{Kind: BlackHole})
		}
		if s.ils.address != "" && s.ils.listener == nil {
			set = append(set, Fault{Kind: Refuse})
		}
		return set
	})
}

// takeFault uses up one fault for a request; its Kind is empty if there is
// none. The caller holds the lock.
func (l *ILS) takeFault(code string) Fault {
	for i, f := range l.faults {
		if f.Code != "" && f.Code != code {
			continue
		}
		if f.Times == 1 {
			l.faults = slices.Delete(l.faults, i, i+1)
		} else if f.Times > 1 {
			l.faults[i].Times--
		}
		return f
	}
	return Fault{}
}

// wait lasts as long as the fault says; it is false if the ILS was closed
// before.
func (l *ILS) wait(f Fault) bool {
	if f.Until != nil {
		select {
		case <-f.Until:
			return true
		case <-l.done:
			return false
		}
	}
	t := time.NewTimer(f.Delay)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.done:
		return false
	}
}
