package memory_test

import (
	"testing"

	"sip2gate/dedup/memory"
	"sip2gate/dedup/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		return storetest.Harness{Store: memory.New("for the test")}
	})
}
