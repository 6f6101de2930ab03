package serialbridge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sip2gate/serialbridge"
)

// The WAN is cut for an hour in the middle of a checkout. A kiosk that asks
// for the status every ten seconds, and patrons who try again every minute,
// are answered in time, all the time, and nobody is told what is not so.
func TestWANCutForAnHour(t *testing.T) {
	for _, cut := range []struct {
		name string
		how  func(ctx context.Context) error
		back time.Duration // how soon after the WAN the ILS must be there again
	}{
		{"port closed", refuse, 10 * time.Second},
		{"black hole", blackHole, 15 * time.Second}, // an attempt that began before has its whole time
	} {
		for _, lent := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, lent %v", cut.name, lent), func(t *testing.T) {
				bubble(t, func(t *testing.T, r *rig) {
					k := r.serial().loggedIn()
					k.send("STAT")
					k.expect("R-STAT-Y", time.Second)
					r.ils.on(func(q *request) bool { // the 11 arrives, its answer does not
						if !q.is("11") || q.nth > 1 {
							return false
						}
						if lent {
							q.lend()
						}
						return true
					})
					r.ils.connecting(cut.how)
					k.send("F1")
					k.refused('1', "could not be confirmed", 15*time.Second)

					seen := make(map[string]int)
					for minute := range 60 {
						for range 5 {
							begin := time.Now()
							k.send("STAT")
							got := k.read(2 * time.Second)
							if !strings.HasPrefix(got, "98N") {
								t.Fatalf("minute %d: %q", minute, got)
							}
							seen["98 with on-line N"]++
							after(10*time.Second - time.Since(begin))
						}
						k.send(seq(t, "F1-DATE", byte(minute)))
						k.refused('0'+byte(minute%10), "could not be confirmed", 15*time.Second)
						seen["please ask staff"]++
					}
					t.Logf("what the kiosk saw: %v", seen)

					r.ils.connecting(nil)
					for begin := time.Now(); ; after(time.Second) {
						k.send("STAT")
						if strings.HasPrefix(k.read(2*time.Second), "98Y") {
							break
						}
						if d := time.Since(begin); d > cut.back {
							t.Fatalf("the ILS is still away %v after the WAN came back", d)
						}
					}
					k.send(seq(t, "F1-DATE", 7))
					k.lends(item1, 15*time.Second)
					if lent {
						r.ils.want(item1, 1, 1, 0)
					} else {
						r.ils.want(item1, 2, 1, 0)
					}
				})
			})
		}
	}
}

// 64 kiosks lose the same ILS at the same moment and poll every second. They
// neither storm it nor come back all at once, and come back by themselves.
func TestNoReconnectStorm(t *testing.T) {
	const kiosks, outage = 64, 5 * time.Minute
	bubble(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		tries := make(map[int64]int) // by second
		r.ils.connecting(func(context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			tries[int64(time.Since(bubbleStart)/time.Second)]++
			return errors.New("connection refused")
		})
		var wg sync.WaitGroup
		until := time.Now().Add(outage)
		for i := range kiosks {
			k := r.connect(fmt.Sprintf("192.0.2.%d", i+1))
			wg.Go(func() {
				for time.Now().Before(until) {
					k.send("STAT")
					if got := k.read(2 * time.Second); !strings.HasPrefix(got, "98N") {
						t.Errorf("kiosk %d: %q", i, got)
						return
					}
					after(time.Second)
				}
				after(10 * time.Second)
				k.send("STAT")
				k.expect("R-STAT-Y", 2*time.Second)
			})
		}
		after(outage + 3*time.Second) // every kiosk has asked for the last time
		mu.Lock()
		most, all := 0, 0
		for second, n := range tries {
			all += n
			if second > 30 { // the first pauses are short on purpose
				most = max(most, n)
			}
		}
		mu.Unlock()
		t.Logf("%d attempts in %v, at most %d in one second", all, outage, most)
		if most > kiosks*2/3 || all > kiosks*int(outage/time.Second)/2 {
			t.Errorf("%d attempts in %v, %d in one second: that is a storm", all, outage, most)
		}
		r.ils.connecting(nil)
		wg.Wait()
	}, func(r *rig) {
		r.edit = func(c *serialbridge.Config) { c.Stations[1].MaxConnections = kiosks }
	})
}

// C-059: a black hole from the start. The stations do not wait for one another.
func TestC059BlackHole(t *testing.T) {
	const kiosks = 12
	bubble(t, func(t *testing.T, r *rig) {
		var mu sync.Mutex
		trying, most := 0, 0
		r.ils.connecting(func(ctx context.Context) error {
			mu.Lock()
			trying++
			most = max(most, trying)
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			trying--
			mu.Unlock()
			return ctx.Err()
		})
		var wg sync.WaitGroup
		for i := range kiosks {
			k := r.connect(fmt.Sprintf("192.0.2.%d", i+1))
			wg.Go(func() {
				k.send("STAT")
				if got := k.read(2 * time.Second); !strings.HasPrefix(got, "98N") {
					t.Errorf("kiosk %d: %q", i, got)
				}
				k.send(of(t, fmt.Sprintf("3123400000%04d", i), "F1"))
				k.refused('1', "cannot be reached", 15*time.Second)
			})
		}
		wg.Wait()
		mu.Lock()
		defer mu.Unlock()
		if most > kiosks {
			t.Errorf("%d attempts at a time for %d links", most, kiosks)
		}
		if n := len(r.ils.sent("")); n != 0 {
			t.Errorf("%d frames came through", n)
		}
	})
}
