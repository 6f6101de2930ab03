package main
import (
 _ "github.com/BurntSushi/toml"
 _ "go.bug.st/serial"
 _ "go.etcd.io/bbolt"
 _ "golang.org/x/crypto/chacha20poly1305"
 _ "golang.org/x/sys/unix"
 _ "golang.org/x/text/encoding/charmap"
)
func main(){}
