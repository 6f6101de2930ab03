package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

const howBackslash = `in "..." a backslash is written \\; in '...' it stands for itself`

// decode reads the value as typed. The kind that the key has is used only to
// say what to type instead.
func (it item) decode(name string, k kind) (any, *fault) {
	var m map[string]any
	_, err := toml.Decode("v = "+string(it.value), &m)
	if err == nil {
		return m["v"], nil
	}
	raw := string(it.value)
	if !strings.ContainsAny(raw[:1], `"'[{`) {
		return nil, faultf(k.instead(name, raw), "%s = %s cannot be read: it must be %s", name, oneLine(raw), k)
	}
	message := err.Error()
	if pe, ok := errors.AsType[toml.ParseError](err); ok {
		message = pe.Message
	}
	hint := k.instead(name, "")
	switch {
	case strings.HasPrefix(message, "expected a top-level item to end"):
		message, hint = "there is more than one value", "a comment behind a value begins with #"
	case strings.Contains(raw, `\`):
		hint = howBackslash
	}
	return nil, faultf(hint, "the value of %s cannot be read: %s", name, oneLine(message))
}

// convert gives a value as its field wants it.
func (f field) convert(v any, it item) (any, *fault) {
	switch v := v.(type) {
	case string:
		if f.kind == aText || f.kind == aSpan {
			return v, nil
		}
	case int64:
		if f.kind == aNumber {
			return v, nil
		}
	case bool:
		if f.kind == aFlag {
			return v, nil
		}
	case []any:
		if all, ok := stringList(v); ok && f.kind == aList {
			return all, nil
		}
	}
	raw := fmt.Sprint(v)
	if describe(v) == "a date" {
		raw = string(it.value)
	}
	if v, ok := v.([]any); ok {
		var all []string
		for _, e := range v {
			all = append(all, fmt.Sprint(e))
		}
		raw = strings.Join(all, `", "`)
	}
	return nil, faultf(f.kind.instead(f.name, raw), "%s is %s, but must be %s", f.name, describe(v), f.kind)
}

func stringList(v []any) ([]string, bool) {
	all := []string{}
	for _, e := range v {
		s, ok := e.(string)
		if !ok {
			return nil, false
		}
		all = append(all, s)
	}
	return all, true
}

func describe(v any) string {
	switch v := v.(type) {
	case string:
		return "text"
	case int64, float64:
		return "a number"
	case bool:
		return "true or false"
	case []any:
		if _, ok := stringList(v); !ok {
			return "a list with more than texts in it"
		}
		return "a list"
	case []map[string]any, map[string]any:
		return "a table"
	default:
		return "a date"
	}
}

// instead says what to type for what was typed.
func (k kind) instead(name, raw string) string {
	raw = oneLine(strings.Trim(raw, `"' `))
	plain := raw != "" && len(raw) <= 60 && !strings.ContainsAny(raw, `\[]{}`)
	_, err := strconv.Atoi(raw)
	switch {
	case k == aNumber && err == nil:
		return "type " + name + " = " + raw
	case k == aNumber:
		return "type the digits alone after " + name + " ="
	case k == aFlag:
		switch strings.ToLower(raw) {
		case "true", "yes", "on", "1":
			return "type " + name + " = true"
		case "false", "no", "off", "0":
			return "type " + name + " = false"
		}
		return "type " + name + " = true or " + name + " = false"
	case k == aSpan && err == nil:
		return "type " + name + ` = "` + raw + `s"`
	case k == aList && plain:
		return "type " + name + ` = ["` + raw + `"]`
	case k == aList:
		return "type " + name + ` = ["one", "two"]`
	case plain && !strings.Contains(raw, `"`):
		return "type " + name + ` = "` + raw + `"`
	default:
		return "type " + name + ` = "..."`
	}
}

// oneLine makes text fit into a report: no line ends, and not too long.
func oneLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s); len(r) > 80 {
		s = string(r[:80]) + "..."
	}
	return s
}
