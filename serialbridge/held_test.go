package serialbridge_test

import (
	"testing"
	"time"
)

// The model found this: 09 at the ILS, its kiosk gives up → 11, claimed, waits
// for the link → the 09 is not answered → the 11 was written all the same,
// though for settle nothing of the item is to be sent.
func TestAClaimThatWaitsBehindACheckinIsNotSentAfterItFails(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool { return q.is("09") })
		k := r.serial().loggedIn()
		k.send("CI")
		after(4 * time.Second)
		k.send("F1") // at 10 s the 09 is given up, and until 40 s nothing is sent
		k.refused('1', "ask staff", 15*time.Second)
		r.event("checkout_admitted", 1)
		if n := r.ils.checkouts(item1); n != 0 {
			t.Errorf("%d 11s were sent", n)
		}
		after(22 * time.Second)
		k.send("F1-DATE")
		k.expect("R1-SEQ", 15*time.Second)
		r.ils.want(item1, 1, 1, 0)
	})
}
