module sip2gate

go 1.26.0

require (
	github.com/BurntSushi/toml v1.6.0
	go.bug.st/serial v1.8.0
	go.etcd.io/bbolt v1.5.0
	golang.org/x/crypto v0.59.0
	golang.org/x/sys v0.50.0
	golang.org/x/text v0.44.0
)
