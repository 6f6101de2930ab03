package config

import "strings"

// nearest gives the known word that was probably meant: the same but for case
// and hyphens, or a few slips of the finger away, or cut short. It is empty if
// none is near.
func nearest(word string, known []string) string {
	plain := strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(word))
	best, least := "", max(1, min(len(plain), 12)/3)+1
	for _, k := range known {
		if squeeze(k) == squeeze(plain) {
			return k
		}
		if d := distance(plain, k); d < least {
			best, least = k, d
		}
	}
	if best != "" || plain == "" {
		return best
	}
	for _, k := range known { // E for even, warning for warn
		if strings.HasPrefix(k, plain) || strings.HasPrefix(plain, k) {
			return k
		}
	}
	return ""
}

func squeeze(s string) string { return strings.NewReplacer("-", "", "_", "").Replace(s) }

// distance counts the characters to insert, delete, replace or swap with
// their neighbour to make b of a.
func distance(a, b string) int {
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
