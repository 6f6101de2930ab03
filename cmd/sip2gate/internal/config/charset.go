package config

import (
	"fmt"

	"golang.org/x/text/encoding/charmap"
)

// pages are the character sets of one byte a character. The value of utf-8 and
// ascii is nil: those need no table.
var pages = map[string]*charmap.Charmap{
	"ascii":        nil,
	"utf-8":        nil,
	"iso-8859-1":   charmap.ISO8859_1,
	"windows-1252": charmap.Windows1252,
	"cp850":        charmap.CodePage850,
	"cp437":        charmap.CodePage437,
}

// Charsets lists the character sets that a station's charset can name.
func Charsets() []string {
	return []string{"ascii", "utf-8", "iso-8859-1", "windows-1252", "cp850", "cp437"}
}

// A CharsetError says that a character set does not have a character.
type CharsetError struct {
	Charset string
	Char    rune
}

func (e *CharsetError) Error() string {
	return fmt.Sprintf("%s does not have %s", e.Charset, charName(e.Char))
}

// Encode gives text as the bytes of a character set, one of Charsets. The
// error is a *CharsetError if the set does not have one of the characters.
func Encode(charset, text string) ([]byte, error) {
	page, ok := pages[charset]
	if !ok {
		return nil, fmt.Errorf("encode a message: unknown character set %q", charset)
	}
	out := make([]byte, 0, len(text))
	for _, r := range text {
		switch {
		case r < 0x80:
			out = append(out, byte(r))
		case charset == "utf-8":
			out = append(out, string(r)...)
		case page == nil:
			return nil, &CharsetError{charset, r}
		default:
			b, ok := page.EncodeRune(r)
			if !ok {
				return nil, &CharsetError{charset, r}
			}
			out = append(out, b)
		}
	}
	return out, nil
}
