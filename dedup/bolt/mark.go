package bolt

import (
	"encoding/binary"
	"time"

	"sip2gate/dedup/clock"
)

// appendMark encodes the gate-time mark and the sum over all records.
func appendMark(b []byte, m clock.Mark, sum uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(m.BootID)))
	b = append(b, m.BootID...)
	b = binary.AppendVarint(b, int64(m.Boot))
	b = binary.AppendVarint(b, int64(m.Gate))
	return binary.AppendUvarint(b, sum)
}

// parseMark undoes appendMark.
func parseMark(b []byte) (m clock.Mark, sum uint64, err error) {
	d := decoder{b: b}
	m.BootID = string(d.take(d.uvarint()))
	m.Boot = time.Duration(d.varint())
	m.Gate = time.Duration(d.varint())
	sum = d.uvarint()
	return m, sum, d.end()
}
