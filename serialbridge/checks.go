package serialbridge

import (
	"bytes"
	"sync/atomic"

	"sip2gate/serialbridge/sip2"
)

// checks judges the trailers of one kiosk's frames.
type checks struct {
	mode   Checksum
	right  atomic.Bool // it has sent a right trailer
	right8 bool        // and one on a frame with bytes above 0x7F
	wrong  []byte      // the last frame that was sent back
	copies int         // how often it came in a row
}

// verdict on a frame's bytes.
type verdict uint8

const (
	sound   verdict = iota
	resend          // damaged on the line: 96, and it goes no further
	insists         // the third copy of the same wrong bytes is no noise
)

// judge also learns, so it is called once for each frame but a 97, which is
// never judged.
func (c *checks) judge(m *sip2.Message, doubled bool) verdict {
	high := sip2.NonASCII(m.Raw)
	if m.Trailer.Valid && !doubled {
		c.right.Store(true)
		c.right8 = c.right8 || high
		c.wrong, c.copies = nil, 0
		return sound
	}
	if !doubled {
		switch {
		case c.mode == ChecksumOff,
			c.mode != ChecksumStrict && !c.right.Load(),
			// Many peers sum characters, not bytes.
			c.mode != ChecksumStrict && high && !c.right8:
			c.wrong, c.copies = nil, 0
			return sound
		}
	}
	if !bytes.Equal(c.wrong, m.Raw) {
		c.wrong, c.copies = bytes.Clone(m.Raw), 0
	}
	c.copies++
	if c.copies >= 3 {
		return insists
	}
	return resend
}

// doubledCheckout reports whether an 11 is two frames run together: ILSs take
// the first or the last of two equal fields, and would lend another item than
// the one claimed.
func doubledCheckout(m *sip2.Message) bool {
	return m.Code == sip2.CodeCheckout &&
		(m.Count("AA") > 1 || m.Count("AB") > 1 || m.Count("AO") > 1)
}

// resendRequest is a 96; it never has AY.
func (c *checks) resendRequest() []byte {
	if c.right.Load() || c.mode == ChecksumStrict {
		return sip2.AppendTrailer([]byte("96"), false, 0)
	}
	return []byte("96")
}
