package bolt

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"sip2gate/dedup"
	"sip2gate/dedup/clock"
	"sip2gate/dedup/storetest"
)

func TestRecordRoundTrip(t *testing.T) {
	full := storetest.Record(1, time.Hour)
	full.Rev = 1 << 40
	full.State = dedup.Completed
	full.Marked, full.Delivered, full.Partial = true, true, true
	full.CompletedAt, full.Expires = time.Hour+1, -1
	full.Answer = []byte{}
	pair := full
	pair.Pair = pair.Key
	for _, want := range []dedup.Record{{}, full, pair} {
		got, err := parseRecord(appendRecord(nil, &want))
		if err != nil {
			t.Fatal(err)
		}
		if want.Compared == nil {
			want.Compared = got.Compared
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("record is\n%+v\nwant\n%+v", got, want)
		}
	}
}

// Every field of the record is written: a field that is added to it and
// forgotten here would be lost at the next restart.
func TestRecordFields(t *testing.T) {
	base := appendRecord(nil, &dedup.Record{})
	typ := reflect.TypeFor[dedup.Record]()
	for i := range typ.NumField() {
		var r dedup.Record
		switch f := reflect.ValueOf(&r).Elem().Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString("x")
		case reflect.Uint8, reflect.Uint32, reflect.Uint64:
			f.SetUint(1)
		case reflect.Int64:
			f.SetInt(1)
		case reflect.Array:
			f.Index(0).SetUint(1)
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		default:
			t.Fatalf("field %s has a kind that is not known here", typ.Field(i).Name)
		}
		if bytes.Equal(appendRecord(nil, &r), base) {
			t.Errorf("field %s is not written", typ.Field(i).Name)
		}
	}
}

func TestMarkRoundTrip(t *testing.T) {
	want := clock.Mark{BootID: "6f1c", Boot: time.Hour, Gate: 1 << 50}
	m, sum, err := parseMark(appendMark(nil, want, 1<<63))
	if err != nil || m != want || sum != 1<<63 {
		t.Errorf("mark is %+v, %x, %v", m, sum, err)
	}
}

func TestSealedPlace(t *testing.T) {
	s, err := newSealer(bytes.Repeat([]byte("s"), 32))
	if err != nil {
		t.Fatal(err)
	}
	sealed := s.seal([]byte("bucket"), []byte("key"), []byte("text"))
	if plain, former, err := s.open([]byte("bucket"), []byte("key"), sealed); err != nil || former || string(plain) != "text" {
		t.Fatalf("open = %q, %v, %v", plain, former, err)
	}
	for _, place := range [][2]string{{"bucket", "kex"}, {"bucker", "key"}, {"bucketk", "ey"}} {
		if _, _, err := s.open([]byte(place[0]), []byte(place[1]), sealed); !errors.Is(err, errSealed) {
			t.Errorf("opened in %v: %v", place, err)
		}
	}
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		if _, _, err := s.open([]byte("bucket"), []byte("key"), bad); err == nil {
			t.Errorf("opened though byte %d was changed", i)
		}
		if _, _, err := s.open([]byte("bucket"), []byte("key"), sealed[:i]); err == nil {
			t.Errorf("opened though cut to %d bytes", i)
		}
	}
}

// Whatever bytes come, parsing ends, and what it accepts is written the same.
func FuzzParseRecord(f *testing.F) {
	r := storetest.Record(1, time.Hour)
	whole := appendRecord(nil, &r)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b)
		if err != nil {
			return
		}
		again, err := parseRecord(appendRecord(nil, &r))
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%+v was read back as %+v, %v", r, again, err)
		}
	})
}
