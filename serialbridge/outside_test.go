package serialbridge_test

import (
	"testing"
	"time"

	"sip2gate/serialbridge/sip2"
)

// What a randomised driver found, each cut down to its shortest form.

const slowRead = "6300020261130    101500  Y       AOMAIN|AA21234000000011|AC|AD4711|"

// A doubt that no read settles, of a kiosk that has hung up, is read with
// growing pauses: the gate's own links are no news that would shorten them.
func TestDoubtIsNotReadInAStorm(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.ils.on(func(q *request) bool { return q.is("11") })
		r.ils.lent(item1, patron2) // 63 says no, 17 says on loan: nothing is proved
		k := r.connect("192.0.2.1").loggedIn()
		k.send("F1")
		k.refused('1', "could not be confirmed", 15*time.Second)
		k.hangUp()
		after(time.Minute)
		connections, reads := r.ils.connections(), r.ils.reads()
		after(time.Hour)
		if n := r.ils.reads() - reads; n == 0 || n > 60 {
			t.Errorf("%d reads about one doubt in an hour", n)
		}
		if n := r.ils.connections() - connections; n > 30 {
			t.Errorf("%d connections for one doubt in an hour", n)
		}
	})
}

// Whether a key has expired is decided when a transmission arrives, also when
// it has to queue behind another while a sweep passes.
func TestSweepLeavesWhatIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.connect("192.0.2.1").loggedIn()
		after(8 * time.Second)
		k.send("F1")
		k.lends(item1, time.Second)
		after(88 * time.Second) // the window is 90 s
		r.ils.on(func(q *request) bool {
			if q.is("63") {
				after(8 * time.Second)
			}
			return false
		})
		k.send(trailed(slowRead, '3'), "F1-DATE")
		k.read(15 * time.Second)
		k.read(15 * time.Second)
		r.ils.want(item1, 1, 1, 0)
	})
}

// A transmission inside the window that dies in the queue moves the window all
// the same.
func TestQueuedTransmissionMovesTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.connect("192.0.2.1").loggedIn()
		k.send("F1")
		k.lends(item1, time.Second)
		after(80 * time.Second)
		r.ils.on(func(q *request) bool { return q.is("63") && q.nth == 1 })
		k.send(trailed(slowRead, '3'), "F1-DATE")
		k.read(15 * time.Second)
		k.read(15 * time.Second)
		after(10 * time.Second)
		k.send("F1-DATE") // a good 25 s after the one before
		k.lends(item1, 15*time.Second)
		r.ils.want(item1, 1, 1, 0)
	})
}

// Two kiosks, one transaction: the repeat of one is no repeat of what the
// other has under way. Each wait gets its answer.
func TestRepeatDoesNotJoinAnothersFlight(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, b := r.serial().loggedIn(), r.connect("192.0.2.2").loggedIn()
		r.ils.on(func(q *request) bool {
			switch {
			case q.is("11") && q.nth == 1:
				q.raw("96AZFEF6\r")
				return true
			case q.is("11"):
				return holding(4 * time.Second)(q)
			}
			return false
		})
		a.send("F1")
		a.expect("96", time.Second)
		b.send("F1") // the patron has gone to the other kiosk
		after(time.Second)
		a.send("F1") // the first repeats what the 96 asked for
		a.lends(item1, 10*time.Second)
		b.lends(item1, 15*time.Second)
		r.ils.want(item1, 2, 1, 0)
	})
}

// A serial kiosk's right trailers are remembered over a restart: a damaged 11
// is not the first thing to pass.
func TestDetectionOutlivesARestart(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		k.send("F3")
		k.lends(item2, time.Second)
		r.restart()
		k = r.serial()
		k.send("F1-BADAZ")
		k.expect("96", time.Second)
		r.ils.want(item1, 0, 1, 0)
	})
}

// The ILS's refusal comes twice, the copy right behind the next 11 of the same
// patron and item, on a link that has not shown yet that it echoes numbers.
func TestSecondRefusalReleasesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		k := r.serial().loggedIn()
		var refusal string
		r.ils.on(func(q *request) bool {
			switch {
			case q.is("11") && q.nth == 1:
				body := "120NUN20261130    101501AOMAIN|AA21234000000011|AB31234000000022|AJ|AH|AFon hold|"
				refusal = string(sip2.AppendTrailer([]byte(body), true, q.msg.Trailer.Seq)) + "\r"
				q.raw(refusal)
				return true
			case q.is("11") && q.nth == 2:
				q.lend()
				q.raw(refusal)
				return true
			}
			return false
		})
		k.send("F1")
		k.read(time.Second)
		after(5 * time.Second)
		k.send("F1-SEQ")
		k.lends(item1, 15*time.Second) // settled by a read
		after(5 * time.Second)
		k.send(seq(t, "F1", 3))
		k.lends(item1, 15*time.Second)
		r.ils.want(item1, 2, 1, 0)
	})
}

// A kiosk that sends another request has given the one before up, also where
// that waits for somebody else's outcome: it never hears the old answer.
func TestOldAnswerIsNotHeardAsTheNew(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		a, b := r.serial().loggedIn(), r.connect("192.0.2.2").loggedIn()
		r.ils.on(holding(8 * time.Second))
		a.send("F1")
		after(time.Second)
		b.send("F1-DATE") // waits for the outcome of the first
		after(3 * time.Second)
		b.send("STAT")
		b.expect("R-STAT-Y", 2*time.Second)
		b.none(20 * time.Second)
		a.expect("R1", time.Second)
		r.ils.want(item1, 1, 1, 0)
	})
}
