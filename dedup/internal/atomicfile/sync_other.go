//go:build !unix

package atomicfile

import "os"

// Windows has no way to sync a directory; its file systems journal names.
func syncDir(*os.File) error { return nil }
