package config

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// badByte+b stands for a byte b that is not UTF-8 while the file is taken
// apart, so that it counts as one character. It lies outside Unicode.
const badByte = unicode.MaxRune + 1

// lines turns a file as an editor left it into its lines of characters. What
// Windows does is read as meant where nothing can be misread: byte order marks
// at the start of a line (they stay in the middle of a file when two are
// joined), UTF-16, every kind of line end, the Ctrl-Z of an old editor at the
// end.
func lines(data []byte) [][]rune {
	text := utf16Text(data)
	if text == nil {
		text = utf8Text(data)
	}
	for len(text) > 0 && slices.Contains([]rune("\x1a \t\r\n"), text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	out := [][]rune{nil}
	for i, r := range text {
		last := &out[len(out)-1]
		switch {
		case r == '\n' && i > 0 && text[i-1] == '\r': // the second half of CR LF
		case r == '\n' || r == '\r':
			out = append(out, nil)
		case r == 0xFEFF && len(*last) == 0:
		default:
			*last = append(*last, r)
		}
	}
	return out
}

// utf16Text decodes UTF-16, told by its mark or, without one, by the zero
// bytes beside the first two characters, which are always ASCII in such a
// file. It is nil for anything else.
func utf16Text(data []byte) []rune {
	if len(data) < 4 {
		return nil
	}
	var order binary.ByteOrder
	switch zero := [4]bool{data[0] == 0, data[1] == 0, data[2] == 0, data[3] == 0}; {
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}), zero == [4]bool{false, true, false, true}:
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte{0xFE, 0xFF}), zero == [4]bool{true, false, true, false}:
		order = binary.BigEndian
	default:
		return nil
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return utf16.Decode(units)
}

func utf8Text(data []byte) []rune {
	text := make([]rune, 0, len(data))
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			r = badByte + rune(data[0])
		}
		text = append(text, r)
		data = data[n:]
	}
	return text
}

// charNames are the characters that get into such files unseen, and what was
// meant.
var charNames = map[rune]struct{ name, meant string }{
	0x0000: {"NUL", ""},
	0x0009: {"TAB", ""},
	0x000A: {"LINE FEED", ""},
	0x000D: {"CARRIAGE RETURN", ""},
	0x001A: {"Ctrl-Z", ""},
	0x0020: {"SPACE", ""},
	0x00A0: {"NO-BREAK SPACE", "an ordinary space"},
	0x00AD: {"SOFT HYPHEN", ""},
	0x00AB: {"LEFT-POINTING DOUBLE ANGLE QUOTATION MARK", `the straight quote "`},
	0x00BB: {"RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK", `the straight quote "`},
	0x200B: {"ZERO WIDTH SPACE", ""},
	0x200E: {"LEFT-TO-RIGHT MARK", ""},
	0x200F: {"RIGHT-TO-LEFT MARK", ""},
	0x2013: {"EN DASH", "the hyphen -"},
	0x2014: {"EM DASH", "the hyphen -"},
	0x2018: {"LEFT SINGLE QUOTATION MARK", `the straight quote "`},
	0x2019: {"RIGHT SINGLE QUOTATION MARK", `the straight quote "`},
	0x201A: {"SINGLE LOW-9 QUOTATION MARK", `the straight quote "`},
	0x201C: {"LEFT DOUBLE QUOTATION MARK", `the straight quote "`},
	0x201D: {"RIGHT DOUBLE QUOTATION MARK", `the straight quote "`},
	0x201E: {"DOUBLE LOW-9 QUOTATION MARK", `the straight quote "`},
	0x202F: {"NARROW NO-BREAK SPACE", "an ordinary space"},
	0x2212: {"MINUS SIGN", "the hyphen -"},
	0xFEFF: {"BYTE ORDER MARK", ""},
	0xFFFD: {"REPLACEMENT CHARACTER", ""},
}

// charFault says that a character is where none like it can be, and what to
// type instead.
func charFault(r rune) *fault {
	if b, ok := asBadByte(r); ok {
		meant := charmap.Windows1252.DecodeByte(b)
		hint := "save the file as UTF-8"
		if meant != utf8.RuneError && unicode.IsPrint(meant) {
			hint += fmt.Sprintf("; in Windows-1252 the byte is %c", meant)
		}
		return faultf(hint, "the byte 0x%02X is not UTF-8", b)
	}
	c := charNames[r]
	switch {
	case c.meant != "":
		return faultf("type "+c.meant+" instead", "%s cannot stand here", charName(r))
	case unicode.IsPrint(r):
		return faultf("text goes in straight quotes: \"...\"", "%s cannot stand here", charName(r))
	default:
		return faultf("delete it; it is easily overlooked, so type the line anew if in doubt", "%s cannot stand here", charName(r))
	}
}

// charName gives U+201C LEFT DOUBLE QUOTATION MARK, or U+00E9 'é' for one that
// can be seen.
func charName(r rune) string {
	if b, ok := asBadByte(r); ok {
		return fmt.Sprintf("the byte 0x%02X", b)
	}
	s := fmt.Sprintf("U+%04X", r)
	if c, ok := charNames[r]; ok {
		return s + " " + c.name
	}
	if unicode.IsPrint(r) {
		return s + " '" + string(r) + "'"
	}
	return s
}

func asBadByte(r rune) (byte, bool) {
	if r >= badByte && r <= badByte+0xFF {
		return byte(r - badByte), true
	}
	return 0, false
}

// hidden says whether a character looks like none or like a plain space. Such
// a one in a name or an address is never meant.
func hidden(r rune) bool {
	_, bad := asBadByte(r)
	return bad || r != ' ' && (unicode.IsSpace(r) || !unicode.IsPrint(r))
}
