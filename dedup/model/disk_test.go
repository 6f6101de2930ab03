package model

import (
	"context"
	"slices"
	"time"

	"sip2gate/dedup"
	"sip2gate/dedup/memory"
)

// disk is a store whose power can fail. It remembers each state since the last
// one that is surely on the disk: at a crash any of them may be what is left,
// since a batch holds all that came before it.
type disk struct {
	*memory.Store
	since [][]memory.Entry // oldest first: what surely is there; newest last

	// Sabotages: records that Object leaves out, and tokens that are taken for
	// whatever token the record has.
	hidden func(dedup.Record) bool
	alias  map[dedup.Digest]dedup.Token
}

func newDisk(left []memory.Entry) *disk {
	d := &disk{Store: memory.New("a model")}
	for _, e := range left {
		d.Index().Load(e)
	}
	d.since = [][]memory.Entry{left}
	return d
}

// wrote notes a change of the given durability.
func (d *disk) wrote(how dedup.Durability) {
	now := d.entries()
	if how == dedup.Synced {
		d.since = d.since[:0:0]
	}
	d.since = append(d.since, now)
}

func (d *disk) entries() []memory.Entry {
	var now []memory.Entry
	for r := range d.All() {
		now = append(now, memory.Entry{Record: r, Seq: uint64(len(now) + 1)})
	}
	return now
}

// flush: whatever is waiting reaches the disk, as it does within seconds.
func (d *disk) flush() { d.since = d.since[len(d.since)-1:] }

func (d *disk) Insert(ctx context.Context, r dedup.Record, now time.Duration) (*dedup.Record, error) {
	standing, err := d.Store.Insert(ctx, r, now)
	if standing == nil && err == nil {
		d.wrote(dedup.Synced)
	}
	return standing, err
}

func (d *disk) Update(ctx context.Context, r dedup.Record, how dedup.Durability) (dedup.Record, error) {
	now, err := d.Store.Update(ctx, r, how)
	if err == nil {
		d.wrote(how)
	}
	return now, err
}

func (d *disk) UpdateAll(ctx context.Context, rs []dedup.Record, how dedup.Durability) ([]dedup.Record, error) {
	now, err := d.Store.UpdateAll(ctx, rs, how)
	if err == nil {
		d.wrote(how)
	}
	return now, err
}

func (d *disk) Delete(ctx context.Context, key dedup.Digest, token dedup.Token, how dedup.Durability) error {
	if _, ok := d.alias[key]; ok {
		now, _ := d.Store.Get(key)
		token = now.Token
	}
	err := d.Store.Delete(ctx, key, token, how)
	if err == nil {
		d.wrote(how)
	}
	return err
}

func (d *disk) Get(key dedup.Digest) (dedup.Record, bool) {
	r, ok := d.Store.Get(key)
	if token, aliased := d.alias[key]; ok && aliased {
		r.Token = token
	}
	return r, ok
}

func (d *disk) Sweep(ctx context.Context, now time.Duration) (int, error) {
	n, err := d.Store.Sweep(ctx, now)
	if n > 0 {
		d.wrote(dedup.Behind)
	}
	return n, err
}

func (d *disk) Object(object dedup.Digest) []dedup.Record {
	rs := d.Store.Object(object)
	if d.hidden != nil {
		rs = slices.DeleteFunc(rs, d.hidden)
	}
	return rs
}
