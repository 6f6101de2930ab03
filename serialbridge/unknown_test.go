package serialbridge_test

import (
	"strings"
	"testing"
	"time"
)

// forgetful is a start after the store was lost.
func forgetful(r *rig) { r.amnesia = true }

// After amnesia a checkout is read before it is sent: what was forgotten may
// have been lent.
func TestAmnesiaReadsFirst(t *testing.T) {
	t.Run("lent", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			r.ils.lent(item1, patron1)
			k.send("F1")
			got := k.lends(item1, 2*time.Second)
			if !strings.Contains(got, "AH20261221    235900|") || !strings.Contains(got, "Already on loan") {
				t.Errorf("got %q, want the ILS's due date and the text of a loan that a read has shown", got)
			}
			k.send("F1-SEQ") // from memory from now on
			k.lends(item1, 2*time.Second)
			r.ils.want(item1, 0, 0, 0)
			if e := r.log.events("loan_committed"); len(e) != 0 {
				t.Errorf("a loan that was only read is told as a new one: %v", e)
			}
		}, forgetful)
	})
	t.Run("not lent", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			begin := time.Now()
			k := r.serial().loggedIn()
			k.send("F1") // the ILS may still be at work on what was sent before
			k.refused('1', "could not be confirmed", 15*time.Second)
			r.ils.want(item1, 0, 0, 0)
			after(r.ilsTimeout + r.settle - time.Since(begin))
			k.send("F1-DATE")
			k.expect("R1-SEQ", 2*time.Second)
			r.ils.want(item1, 1, 1, 0)
		}, forgetful)
	})
	t.Run("sent as soon as the absence is a proof", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			after(r.ilsTimeout + r.settle - 5*time.Second)
			k.send("F1")
			k.expect("R1", 7*time.Second)
			if d := r.ils.sent("11")[0].at.Sub(r.ils.sent("93")[0].at); d < r.ilsTimeout+r.settle {
				t.Errorf("sent after %v", d)
			}
			r.ils.want(item1, 1, 1, 0)
		}, forgetful)
	})
	t.Run("the ILS cannot be reached", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			r.ils.connecting(refuse)
			r.cut()
			after(2 * time.Minute)
			k.send("F1")
			k.refused('1', "could not be confirmed", 15*time.Second)
			r.ils.connecting(nil)
			after(time.Minute)
			k.send("F1-DATE")
			k.expect("R1-SEQ", 14*time.Second)
			r.ils.want(item1, 1, 1, 0)
		}, forgetful)
	})
	t.Run("the ILS answers no reads: sent, and counted", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			k.send("F1")
			k.expect("R1", time.Second)
			if e := r.log.events("checkout_admitted"); len(e) != 1 || e[0]["unchecked"] != true {
				t.Errorf("logged %v", e)
			}
		}, forgetful, func(r *rig) { r.resolve = nil })
	})
	t.Run("over after an hour, and not before by a restart", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.amnesia = false
			r.restart()
			after(59 * time.Minute)
			k := r.serial().loggedIn()
			k.send("F1")
			k.expect("R1", 2*time.Second)
			if n := r.ils.reads(); n == 0 {
				t.Error("within the hour it was sent unread")
			}
			after(2 * time.Minute)
			n := r.ils.reads()
			k.send("F3")
			k.read(2 * time.Second)
			if r.ils.reads() != n {
				t.Error("read after the hour was over")
			}
		}, forgetful)
	})
	t.Run("a first start is no amnesia", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			k.send("F1")
			k.expect("R1", time.Second)
			if n := r.ils.reads(); n != 0 {
				t.Errorf("%d reads", n)
			}
		})
	})
	t.Run("the first refusal is read again", func(t *testing.T) {
		// FOLIO: the forgotten 11 is carried out right after the read.
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			after(r.ilsTimeout + r.settle)
			r.ils.on(func(q *request) bool {
				if !q.is("11") {
					return false
				}
				q.m.lent(item1, patron1)
				q.reply("R-FAIL")
				return true
			})
			k.send("F1")
			k.lends(item1, 4*time.Second)
			r.ils.want(item1, 1, 0, 0)
		}, forgetful)
	})
}

// A kiosk that was off line uploads what it lent: no-block frames, or ordinary
// ones with dates of the past.
func TestOfflineUploads(t *testing.T) {
	noBlock := func(t *testing.T, frame string) string { return edited(t, frame, "11YN", "11YY") }
	t.Run("of a checkout in doubt", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			r.ils.on(mute(1))
			k := r.serial().loggedIn()
			k.send("F1")
			k.lends(item1, 14*time.Second) // settled by a read in time
			after(time.Hour)
			k.send(edited(t, noBlock(t, "F1-NOPIN"), "AY2", "AY3"))
			k.lends(item1, 4*time.Second)
			r.ils.want(item1, 1, 1, 0)
		})
	})
	t.Run("unknown here and lent: not sent", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			r.ils.lent(item1, patron1)
			k.send(noBlock(t, "F1"))
			k.lends(item1, 4*time.Second)
			r.ils.want(item1, 0, 0, 0)
		})
	})
	t.Run("unknown here and not lent: sent as it is", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			frame := noBlock(t, "F1")
			k.send(frame)
			k.expect("R1", 4*time.Second)
			if got, want := bare(r.ils.sent("11")[0].raw), bare(frame); got != want {
				t.Errorf("the ILS got %q, want %q", got, want)
			}
			r.ils.want(item1, 1, 1, 0)
		})
	})
	t.Run("never dropped where no reads are to be had", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			k.send(noBlock(t, "F1"))
			k.expect("R1", 4*time.Second)
			r.ils.want(item1, 1, 1, 0)
		}, func(r *rig) { r.resolve = nil })
	})
	t.Run("ordinary frames with old dates, in order", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			k.send("END") // 10:17:00
			k.expect("R-END", time.Second)
			r.ils.lent(item1, patron1)
			old := func(frame string) string { return edited(t, frame, "20261130    101500", "20261129    171500") }
			k.send(old("F1"), old("F3"))
			k.lends(item1, 4*time.Second)
			k.lends(item2, 4*time.Second)
			r.ils.want(item1, 0, 1, 0)
			r.ils.want(item2, 1, 1, 0)
			n := r.ils.reads()
			k.send(of(t, item3, seq(t, "F1", 8))) // 10:15:00: two minutes before END, more than it would retry
			k.lends(item3, 4*time.Second)
			if r.ils.reads() == n {
				t.Error("an older date than the newest was not read first")
			}
		})
	})
	t.Run("two readers of one book, one after the other", func(t *testing.T) {
		bubble(t, func(t *testing.T, r *rig) {
			k := r.serial().loggedIn()
			k.send(noBlock(t, "F1"), noBlock(t, "F2"))
			k.lends(item1, 4*time.Second)
			k.lends(item1, 4*time.Second)
			r.ils.want(item1, 2, 2, 0)
		})
	})
}
