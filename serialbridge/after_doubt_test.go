package serialbridge_test

import (
	"strings"
	"testing"
	"time"
)

// The first 11 after a doubt was settled as not lent gets ok=0: the first one
// was carried out after all, later than settle, and this ILS says "already
// checked out" (FOLIO does). One read decides what the patron is told.
func TestRefusalAfterADoubtIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		back time.Duration // when the patron tries again
		late bool          // the first one was carried out late
	}{
		"while he waits, lent":            {29 * time.Second, true},
		"while he waits, not lent":        {29 * time.Second, false},
		"settled without him, lent":       {3 * time.Minute, true},
		"settled without him, not lent":   {3 * time.Minute, false},
		"half an hour in the queue, lent": {30 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.ils.on(func(q *request) bool {
					switch {
					case !q.is("11"):
						return false
					case q.nth == 1: // unanswered
					case q.nth == 2 && c.late:
						q.lend() // the first one's, just now
						fallthrough
					default:
						q.reply("R-FAIL")
					}
					return true
				})
				k := r.serial().loggedIn()
				begin := time.Now()
				k.send("F1")
				k.refused('1', "could not be confirmed", 15*time.Second)
				after(c.back - time.Since(begin))
				k.send("F1-DATE")
				if c.late {
					if got := k.lends(item1, 15*time.Second); !strings.Contains(got, "AFAlready on loan to you|AY2") {
						t.Errorf("got %q", got)
					}
					k.send("F1-DATE")
					k.lends(item1, 5*time.Second)
					r.ils.want(item1, 2, 1, 0)
				} else {
					k.expect(seq(t, "R-FAIL", 2), 15*time.Second)
					reads := r.ils.reads()
					k.send("F1-DATE") // the one after is believed
					k.expect(seq(t, "R-FAIL", 2), 15*time.Second)
					if n := r.ils.reads() - reads; n != 0 {
						t.Errorf("%d reads about the second refusal", n)
					}
				}
				k.none(time.Minute)
			})
		})
	}
}
