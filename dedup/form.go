package dedup

// form is what a transmission says of its transaction under one secret.
type form struct {
	Identity
	fingerprint []Digest
}

// identify makes the forms of the request under the secrets of a ring.
func (r *Request) identify(ring *ring) {
	if r.ring == ring {
		return
	}
	r.ring = ring
	r.forms = make([]form, len(*ring))
	for i := range *ring {
		k := (*ring)[i].keys
		id := k.Identify(r.Scope, r.Subject, r.Object, r.Sequence)
		r.forms[i] = form{id, k.Fingerprint(id.Pair, r.Compared)}
	}
}

// is reports whether a record is of the request's transaction, under whatever
// secret. After a change of the sequence mode a record of the other form is
// that too: both are of the same pair.
func (r *Request) is(rec *Record) bool {
	for i := range r.forms {
		f := &r.forms[i]
		if rec.Key == f.Key || rec.Pair == f.Pair && (f.Key == f.Pair || rec.Key == rec.Pair) {
			return true
		}
	}
	return false
}

// formOf is the form of the request under the secret of a record. Where that
// is not known, digests that agree show it.
func (r *Request) formOf(rec *Record) *form {
	for i := range r.forms {
		f := &r.forms[i]
		if rec.Under == (*r.ring)[i].name ||
			rec.Under == 0 && (rec.Key == f.Key || rec.Pair == f.Pair || rec.Subject == f.Subject) {
			return f
		}
	}
	return &r.forms[0]
}

// subject is that of the request as it would show in a record; nil if there is
// no request.
func (r *Request) subject(rec *Record) *Digest {
	if r == nil {
		return nil
	}
	return &r.formOf(rec).Subject
}
