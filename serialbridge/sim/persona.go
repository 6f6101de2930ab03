package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Persona is the kind of library system that an [ILS] plays.
type Persona string

const (
	// Naive has no protection at all: a second Checkout of the same item by
	// the same patron opens a second loan, and a Checkout by another patron
	// ends the loans before it. It answers as the SIP2 2.00 paper says, honours
	// cancel (BI=Y), and is silent to codes that it does not know.
	Naive Persona = "naive"
	// Koha renews: the second Checkout is answered ok=1, renewal ok=Y, with a
	// later due date, until the renewal limit is reached. It ends frames in CR
	// LF, answers 97 with AY0, ignores BI, answers unknown codes 96, ends the
	// session on a blank line, and closes a connection whose first message is
	// not the login when accounts are set.
	Koha Persona = "koha"
	// Folio refuses: the second Checkout is answered ok=0, "already checked
	// out". It sends a 96 for a frame without trailer when error detection is
	// on, repeats its last answer when both AY and AZ equal those of the frame
	// before (on, and on the same connection), and hangs up on unknown codes.
	Folio Persona = "folio"
	// Evergreen, behind its SIPServer, renews if the 11's SC renewal policy is Y
	// and its own policy allows renewals (RenewalLimit is not negative); else
	// the second Checkout is answered ok=0 with renewal ok=Y. Unknown codes end
	// the connection.
	Evergreen Persona = "evergreen"
	// EvergreenMediator is Evergreen behind SIP2Mediator, with its newer back
	// end: it refuses a second Checkout, "already checked out".
	EvergreenMediator Persona = "evergreen-mediator"
	// Sierra renews. An item on loan to another patron it lends all the same,
	// by default, and ends the other loan: a late duplicate can take the item
	// away from the next borrower.
	Sierra Persona = "sierra"
	// Rero (RERO ILS, Invenio) refuses a second Checkout, but two that come
	// within a second make two loans. Unknown codes end the connection.
	Rero Persona = "rero"
)

// ParsePersona reads a persona's name, in any case.
func ParsePersona(name string) (Persona, error) {
	p := Persona(strings.ToLower(name))
	if _, ok := personas[p]; !ok {
		all := Personas()
		names := make([]string, len(all))
		for i, p := range all {
			names[i] = string(p)
		}
		last := len(names) - 1
		return "", fmt.Errorf("unknown persona %q: use %s or %s", name, strings.Join(names[:last], ", "), names[last])
	}
	return p, nil
}

// Personas are all that there are, in the order of their names.
func Personas() []Persona { return slices.Sorted(maps.Keys(personas)) }

// Reaction is what an [ILS] does with a message code that it does not know, or
// that is switched off.
type Reaction int

const (
	// AsPersona is the zero value: what the persona does.
	AsPersona Reaction = iota
	// Silence sends nothing, as SIP2 2.00 asks for unknown codes.
	Silence
	// Resend answers 96.
	Resend
	// HangUp closes the connection.
	HangUp
)

// ErrorDetection says when answers carry AY and AZ.
type ErrorDetection int

const (
	// Mirror is the zero value: an answer has a trailer if its request had
	// one that ended in AY and AZ.
	Mirror ErrorDetection = iota
	// On gives every answer a trailer.
	On
	// Off gives none a trailer.
	Off
)

// ParseErrorDetection reads mirror, on or off.
func ParseErrorDetection(name string) (ErrorDetection, error) {
	switch strings.ToLower(name) {
	case "mirror":
		return Mirror, nil
	case "on":
		return On, nil
	case "off":
		return Off, nil
	}
	return Mirror, fmt.Errorf("unknown error detection %q: use mirror, on or off", name)
}

// again is what a persona makes of a second Checkout by the same patron.
type again int

const (
	lendAgain again = iota
	renew
	renewByPolicy // only if the SC renewal policy of the 11 and its own allow it
	refuse
)

// traits are the habits of a persona.
type traits struct {
	terminator string
	unknown    Reaction
	again      again
	races      time.Duration // two Checkouts of a patron so close together make two loans
	takesOver  bool          // lends an item that another patron has, ending that loan
	cancels    bool          // BI=Y in an 11 undoes the loan
	returnsAll bool          // a Checkin of an item that is not on loan is ok=1
	closes     bool          // a blank line ends the session
	resendAY0  bool          // the answer to 97 is rebuilt with AY0 and ends in CR
	repeats    bool          // equal AY and AZ: the last answer again
	loginFirst bool          // before the login anything else ends the connection
	supported  string        // BX, see SIP2 2.00, ACS status
	lent       string        // AF of a second Checkout that renewed or was refused
	failed     string        // first six bytes of a refused 12, without the date
}

var personas = map[Persona]traits{
	Naive: {
		terminator: "\r", unknown: Silence, again: lendAgain, takesOver: true, cancels: true, returnsAll: true,
		supported: "YYYYYYYYYYYYYYYY", failed: "120NUN",
	},
	Koha: {
		terminator: "\r\n", unknown: Resend, again: renew, closes: true, resendAY0: true, loginFirst: true,
		supported: "YYYYYYYYYYYNYYYY", failed: "120NUN",
		lent: "Item already checked out to you: renewing item.",
	},
	Folio: {
		terminator: "\r", unknown: HangUp, again: refuse, returnsAll: true, repeats: true,
		supported: "YYYNYYYYYYYNNYYY", failed: "120NUN",
		lent: "Item is already checked out",
	},
	Evergreen: {
		terminator: "\r", unknown: HangUp, again: renewByPolicy, returnsAll: true, resendAY0: true,
		supported: "YYYYYYYYYYYNYYYY", failed: "120NUN",
		lent: "Item is already checked out to you: renewing item.",
	},
	EvergreenMediator: {
		terminator: "\r", unknown: HangUp, again: refuse, returnsAll: true,
		supported: "YYYYYYYYYYYNNYYY", failed: "120NUN", // 19 and 25 are not in its tables
		lent: "Item is already checked out",
	},
	Sierra: {
		terminator: "\r", unknown: Silence, again: renew, takesOver: true, returnsAll: true,
		supported: "YYYYYYYYYYYYYYYY", failed: "120NUN",
		lent: "Item is already checked out to you: renewed.",
	},
	Rero: {
		terminator: "\r", unknown: HangUp, again: refuse, races: time.Second,
		supported: "YYYYYYYYYYYYYYYY", failed: "120NUN",
		lent: "Item is already checked out",
	},
}
