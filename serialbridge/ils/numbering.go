package ils

import (
	"sync/atomic"

	"sip2gate/serialbridge/sip2"
)

// numbering is a link's own count of sequence numbers. As long as the gate has
// swallowed and added no frame it leaves the station's numbers alone.
type numbering struct {
	own  atomic.Bool
	last byte // the digit last sent; 0: none on this connection
}

func (n *numbering) reset() {
	n.own.Store(false)
	n.last = 0
}

// next is the frame with the number that the ILS must see.
func (n *numbering) next(frame []byte) []byte {
	t := sip2.ReadTrailer(frame)
	if !t.HasSeq {
		return frame
	}
	seq := t.Seq
	if n.own.Load() && n.last != 0 {
		seq = '0' + (n.last-'0'+1)%10
	}
	n.last = seq
	if seq == t.Seq {
		return frame
	}
	return sip2.AppendRestamped(make([]byte, 0, len(frame)+4), frame, t, seq)
}
