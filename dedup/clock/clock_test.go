package clock_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sip2gate/dedup/clock"
)

func start(t *testing.T, src clock.Source, mark *clock.Mark, floor time.Duration) *clock.Gate {
	t.Helper()
	g, err := clock.Start(src, mark, floor)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestStart(t *testing.T) {
	const h = time.Hour
	tests := []struct {
		name   string
		bootID string
		boot   time.Duration
		mark   *clock.Mark
		floor  time.Duration
		want   time.Duration
	}{
		{"first start", "a", 5 * h, nil, 0, 0},
		{"restart within a boot", "a", 7 * h, &clock.Mark{BootID: "a", Boot: 5 * h, Gate: 100 * h}, 0, 102 * h},
		{"restart at the same moment", "a", 5 * h, &clock.Mark{BootID: "a", Boot: 5 * h, Gate: 100 * h}, 0, 100 * h},
		{"reboot: the uptime has passed, the time off counts as nothing", "b", h, &clock.Mark{BootID: "a", Boot: 5 * h, Gate: 100 * h}, 0, 101 * h},
		{"same boot id, but the clock is behind the mark", "a", 2 * h, &clock.Mark{BootID: "a", Boot: 5 * h, Gate: 100 * h}, 0, 102 * h},
		{"no mark but records", "a", 5 * h, nil, 40 * h, 40 * h},
		{"a record younger than the mark", "a", 5 * h, &clock.Mark{BootID: "a", Boot: 5 * h, Gate: 100 * h}, 103 * h, 103 * h},
		{"boot id unknown: nothing is sure to have passed", "", 7 * h, &clock.Mark{BootID: "", Boot: 5 * h, Gate: 100 * h}, 0, 100 * h},
		{"a mark below zero", "b", 0, &clock.Mark{BootID: "a", Gate: -h}, 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			src := clock.NewManual(test.bootID, test.boot)
			g := start(t, src, test.mark, test.floor)
			if got := g.Now(); got != test.want {
				t.Errorf("gate time is %v, want %v", got, test.want)
			}
			src.Advance(3 * time.Second)
			if got := g.Now(); got != test.want+3*time.Second {
				t.Errorf("3 s later gate time is %v, want %v", got, test.want+3*time.Second)
			}
		})
	}
}

// Over restarts and reboots gate time goes on from the mark.
func TestMarkCarriesOver(t *testing.T) {
	src := clock.NewManual("a", time.Hour)
	g := start(t, src, nil, 0)
	src.Advance(10 * time.Minute)
	mark := g.Mark()
	if want := (clock.Mark{BootID: "a", Boot: 70 * time.Minute, Gate: 10 * time.Minute}); mark != want {
		t.Fatalf("mark is %+v, want %+v", mark, want)
	}
	src.Advance(time.Minute) // while the process is down
	g = start(t, src, &mark, 0)
	if got := g.Now(); got != 11*time.Minute {
		t.Errorf("after a restart gate time is %v, want 11m", got)
	}
	mark = g.Mark()
	src.Reboot("b", 20*time.Second)
	g = start(t, src, &mark, 0)
	if got := g.Now(); got != 11*time.Minute+20*time.Second {
		t.Errorf("after a reboot gate time is %v, want 11m20s", got)
	}
}

func TestNeverDecreases(t *testing.T) {
	src := clock.NewManual("a", time.Hour)
	g := start(t, src, nil, 0)
	src.Advance(time.Minute)
	g.Now()
	src.Advance(-30 * time.Second)
	if got := g.Now(); got != time.Minute {
		t.Errorf("gate time went back to %v", got)
	}
	if got := g.Mark().Gate; got != time.Minute {
		t.Errorf("the mark went back to %v", got)
	}
	src.Advance(time.Minute)
	if got := g.Now(); got != 90*time.Second {
		t.Errorf("gate time is %v, want 1m30s", got)
	}
}

func TestNeverDecreasesAcrossGoroutines(t *testing.T) {
	src := clock.NewManual("a", 0)
	g := start(t, src, nil, 0)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			last := time.Duration(0)
			for range 2000 {
				src.Advance(time.Microsecond)
				now := g.Now()
				if now < last {
					t.Errorf("gate time went from %v to %v", last, now)
					return
				}
				last = now
			}
		})
	}
	wg.Wait()
	if got := g.Now(); got != 16*time.Millisecond {
		t.Errorf("gate time is %v, want 16ms", got)
	}
}

// broken is a source that can fail.
type broken struct {
	id, boot error
	t        time.Duration
}

func (b *broken) BootID() (string, error)          { return "a", b.id }
func (b *broken) Boottime() (time.Duration, error) { return b.t, b.boot }

func TestSourceFails(t *testing.T) {
	fault := errors.New("fault")
	if _, err := clock.Start(&broken{boot: fault}, nil, 0); !errors.Is(err, fault) {
		t.Errorf("Start without a boot-time clock: %v, want its error", err)
	}
	g := start(t, &broken{id: fault, t: time.Hour}, &clock.Mark{BootID: "a", Gate: time.Minute}, 0)
	if got := g.Now(); got != time.Minute {
		t.Errorf("without a boot id gate time is %v, want the mark's", got)
	}
	src := &broken{t: time.Hour}
	g = start(t, src, nil, 0)
	src.t += time.Minute
	g.Now()
	src.t, src.boot = 0, fault
	if got := g.Now(); got != time.Minute {
		t.Errorf("when the source fails gate time is %v, want it to stand at 1m", got)
	}
}

// In a bubble the wall clock stands at the year 2000 and moves only as the
// test sleeps. The system's gate time does not follow it: it is read from the
// kernel's boot-time clock.
func TestWallClockIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := start(t, clock.System(), nil, 0)
		if _, err := clock.System().BootID(); err != nil {
			t.Skip(err)
		}
		<-time.After(1000 * time.Hour) // of the bubble's time: no time at all
		if now := g.Now(); now > time.Hour {
			t.Errorf("gate time followed the wall clock by %v", now)
		}
	})
}

func TestSystem(t *testing.T) {
	src := clock.System()
	a, err := src.Boottime()
	if err != nil {
		t.Fatal(err)
	}
	b, err := src.Boottime()
	if err != nil || b < a || a < 0 {
		t.Errorf("boot time went from %v to %v, %v", a, b, err)
	}
	one, err1 := src.BootID()
	two, err2 := src.BootID()
	if err1 != nil || err2 != nil || one != two {
		t.Errorf("boot ids %q, %v and %q, %v", one, err1, two, err2)
	}
}

func TestMonotonic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.Monotonic()
		if got := c.Now(); got != 0 {
			t.Errorf("it starts at %v", got)
		}
		<-time.After(time.Minute)
		if got := c.Now(); got != time.Minute {
			t.Errorf("after a minute it says %v", got)
		}
	})
}
