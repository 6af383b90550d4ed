package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// Listen opens a port of the loopback address, any free one for 0. A machine
// without the IPv4 one has that of IPv6.
func Listen(ctx context.Context, port uint16) (net.Listener, error) {
	var failures []error
	for _, host := range []string{"127.0.0.1", "::1"} {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(int(port))))
		if err == nil {
			return listener, nil
		}
		failures = append(failures, err)
	}
	return nil, fmt.Errorf("listen on loopback address: %w", errors.Join(failures...))
}

// authorityOf is the host and port that browsers name to reach a listener. One that
// others could reach is refused.
func authorityOf(listener net.Listener) (string, error) {
	address, isTCP := listener.Addr().(*net.TCPAddr)
	if !isTCP || !address.IP.IsLoopback() {
		return "", fmt.Errorf("serve console: %s is no loopback address", listener.Addr())
	}
	return address.String(), nil
}
