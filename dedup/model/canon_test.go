package model

import (
	"encoding/binary"
	"reflect"
	"slices"
	"time"

	"sip2gate/dedup"
)

// canon writes down what a state is, so that two states with equal words
// behave alike from now on. The gate is read by reflection, field by field:
// what is added to it is in the words from then on without anybody's doing.
//
// Tokens are named by where they stand in the store; one that stands nowhere
// there fits nothing any more. Times count in ticks from now, with an end on
// both sides, and in their order among each other, which is all that
// comparisons can see.
type canon struct {
	now     time.Duration
	words   []byte
	times   []moment
	names   map[uint64]byte
	naming  bool // the store is being written
	workers map[uintptr]byte
	flights map[uintptr]byte
}

type moment struct {
	t             time.Duration
	ticks, ranked bool
}

const farAway = window + 2 // ticks; all thresholds are nearer

var (
	durationType = reflect.TypeFor[time.Duration]()
	digestType   = reflect.TypeFor[dedup.Digest]()
	tokenType    = reflect.TypeFor[dedup.Token]()
	recordType   = reflect.TypeFor[dedup.Record]()
	requestType  = reflect.TypeFor[dedup.Request]()
)

// irrelevant are fields of records and requests that no decision looks at, or
// that are the same in all states of a run. TouchedAt is in Expires.
var irrelevant = map[string]bool{
	"Compared": true, "Target": true, "Pair": true, "Scope": true, "Label": true, "Station": true, "Under": true,
	"Since": true, "Rev": true, "Subject": true, "Object": true, "TouchedAt": true, "forms": true,
}

var (
	// ordered are times that are only ever compared with others.
	ordered = map[string]bool{"changed": true, "ClaimedAt": true, "Begun": true}
	// counted are times that are only ever compared with the present.
	counted = map[string]bool{"Last": true, "Until": true, "Deadline": true}
)

// word is the state of the appliance in a string.
func word(a *appliance) string {
	c := &canon{
		now: a.clock.Now(), naming: true,
		names: map[uint64]byte{}, workers: map[uintptr]byte{}, flights: map[uintptr]byte{},
	}
	for i, w := range a.workers {
		c.workers[reflect.ValueOf(w).Pointer()] = byte(i + 1)
	}
	for _, r := range a.disk.entries() {
		c.value(reflect.ValueOf(r.Record))
	}
	for _, older := range a.disk.since[:len(a.disk.since)-1] {
		c.words = append(c.words, 'D')
		for _, r := range older {
			c.value(reflect.ValueOf(r.Record))
		}
	}
	c.naming = false
	c.words = append(c.words, 'G')
	gate := reflect.ValueOf(a.gate).Elem()
	c.value(gate.FieldByName("amnesia"))
	c.value(gate.FieldByName("items"))
	c.words = append(c.words, 'B')
	c.value(reflect.ValueOf(a.session))
	for _, w := range a.workers {
		c.words = append(c.words, 'W')
		c.value(reflect.ValueOf(*w))
		c.flag(w.woken())
	}
	return c.finish()
}

func (c *canon) flag(b bool) {
	if b {
		c.words = append(c.words, 1)
	} else {
		c.words = append(c.words, 0)
	}
}

func (c *canon) value(v reflect.Value) {
	switch t := v.Type(); {
	case t == durationType:
		c.times = append(c.times, moment{time.Duration(v.Int()), true, true})
		return
	case t == digestType, t == tokenType:
		c.name(v)
		return
	case t.PkgPath() == "sync":
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		c.flag(v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		c.words = binary.AppendVarint(c.words, v.Int())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		c.words = binary.AppendUvarint(c.words, v.Uint())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			c.flag(v.IsNil()) // sealed: there or not
			return
		}
		c.words = append(c.words, byte(v.Len()))
		for i := range v.Len() {
			c.value(v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			c.value(v.Index(i))
		}
	case reflect.Struct:
		c.fields(v)
	case reflect.Interface:
		if !v.IsNil() {
			c.value(v.Elem())
		}
	case reflect.Map: // the gate's items
		for _, e := range c.entries(v) {
			c.value(e.value)
		}
	case reflect.Pointer:
		c.pointer(v)
	case reflect.Chan, reflect.String: // channels wake; what woke is written by itself
	default:
		panic("a " + v.Type().String() + " cannot be written down")
	}
}

func (c *canon) fields(v reflect.Value) {
	t := v.Type()
	delivered := t == recordType && v.FieldByName("Delivered").Bool()
	for i := range v.NumField() {
		name, f := t.Field(i).Name, v.Field(i)
		switch {
		case (t == recordType || t == requestType) && irrelevant[name]:
		case f.Type() == durationType:
			c.times = append(c.times, moment{
				t:      time.Duration(f.Int()),
				ticks:  !ordered[name] && !(name == "CompletedAt" && delivered),
				ranked: !counted[name],
			})
		case name == "released": // since when does not matter
			for _, e := range c.entries(f) {
				c.name(e.key)
			}
		case f.Kind() == reflect.Map:
			for _, e := range c.entries(f) {
				c.name(e.key)
				c.value(e.value)
			}
		default:
			c.value(f)
		}
	}
}

func (c *canon) pointer(v reflect.Value) {
	switch n := v.Type().Elem().Name(); {
	case v.IsNil():
		c.words = append(c.words, 0)
	case n == "Gate", n == "Identity", n == "Manual":
	case n == "worker":
		c.words = append(c.words, c.workers[v.Pointer()]) // 0: it has ended
	case n == "Flight":
		id, seen := c.flights[v.Pointer()]
		if !seen {
			id = byte(len(c.flights) + 1)
			c.flights[v.Pointer()] = id
		}
		c.words = append(c.words, id)
		if !seen {
			c.value(v.Elem())
		}
	case n == "item":
		if _, seen := c.flights[v.Pointer()]; !seen {
			c.flights[v.Pointer()] = 0xff
			c.value(v.Elem())
		}
	default:
		c.value(v.Elem())
	}
}

type entry struct {
	named      byte
	key, value reflect.Value
}

// entries are a map's in the order of their keys' names, without those whose
// key fits nothing any more.
func (c *canon) entries(m reflect.Value) []entry {
	var all []entry
	for it := m.MapRange(); it.Next(); {
		d := first8(it.Key())
		n, ok := fixedNames[d]
		if !ok {
			n, ok = c.names[d]
		}
		if ok {
			all = append(all, entry{n, it.Key(), it.Value()})
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return int(a.named) - int(b.named) })
	c.words = append(c.words, byte(len(all)))
	return all
}

func first8(v reflect.Value) uint64 {
	var n uint64
	for i := range 8 {
		n = n<<8 | v.Index(i).Uint()
	}
	return n
}

// fixedNames are digests that are the same in every run.
var fixedNames = map[uint64]byte{}

func (c *canon) name(v reflect.Value) {
	d := first8(v)
	if n, ok := fixedNames[d]; ok || d == 0 {
		c.words = append(c.words, n)
		return
	}
	n, ok := c.names[d]
	if !ok && c.naming {
		n = byte(len(c.names) + 16)
		c.names[d] = n
	}
	c.words = append(c.words, n)
}

// finish appends the times.
func (c *canon) finish() string {
	var sorted []time.Duration
	for _, m := range c.times {
		if m.ranked && m.t > 0 {
			sorted = append(sorted, m.t)
		}
	}
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	for _, m := range c.times {
		if m.t <= 0 { // 0 and -1 mean never
			c.words = append(c.words, 0x80, byte(-m.t))
			continue
		}
		if m.ticks {
			ticks := min(max(int64(m.t/tick)-int64(c.now/tick), -farAway), farAway)
			c.words = append(c.words, byte(int8(ticks)))
		}
		if m.ranked {
			rank, _ := slices.BinarySearch(sorted, m.t)
			c.words = append(c.words, byte(rank))
		}
	}
	return string(c.words)
}
