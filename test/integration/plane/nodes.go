package plane

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// apiServer is the name by which the API server shows itself to a kubelet.
const apiServer = "kube-apiserver-kubelet-client"

// nodes is the network between the API server and its nodes. The API server does not proxy to loopback (pkg/registry/core/node of
// Kubernetes 1.37: isProxyableHostname), so it is told to reach nodes through an HTTP CONNECT proxy, which is this one: a node keeps
// the address it was recorded with, and no packet leaves the socket.
type nodes struct {
	listener net.Listener
	ca       *authority

	mu      sync.Mutex
	servers map[string]*nodeServer // by host:port
}

// A nodeServer is the listener of a node's server: it accepts what the proxy hands over.
type nodeServer struct {
	http   *http.Server
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	addr   net.Addr
}

func (n *nodeServer) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *nodeServer) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

func (n *nodeServer) Addr() net.Addr { return n.addr }

func newNodes(socket string, ca *authority) (*nodes, error) {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	n := &nodes{listener: l, ca: ca, servers: map[string]*nodeServer{}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go n.connect(c)
		}
	}()
	return n, nil
}

// connect answers one CONNECT and hands the connection to the node that it names.
func (n *nodes) connect(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil || req.Method != http.MethodConnect {
		c.Close()
		return
	}
	n.mu.Lock()
	server := n.servers[req.Host]
	n.mu.Unlock()
	if server == nil {
		_, _ = io.WriteString(c, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
		c.Close()
		return
	}
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		c.Close()
		return
	}
	_ = c.SetDeadline(time.Time{})
	select {
	case server.conns <- c:
	case <-server.closed:
		c.Close()
	}
}

// serve answers as the kubelet at host:port, to the API server only.
func (n *nodes) serve(host, port string, handler http.Handler) error {
	own, err := n.ca.sign("system:node:"+host, []string{"system:nodes"}, host)
	if err != nil {
		return err
	}
	certificate, err := own.tls()
	if err != nil {
		return err
	}
	server := &nodeServer{conns: make(chan net.Conn), closed: make(chan struct{}), addr: n.listener.Addr()}
	server.http = &http.Server{
		Handler: handler, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: 30 * time.Second,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate},
			ClientCAs: n.ca.pool(), ClientAuth: tls.RequireAndVerifyClientCert,
			VerifyConnection: func(s tls.ConnectionState) error {
				if s.PeerCertificates[0].Subject.CommonName != apiServer {
					return errors.New("not the API server")
				}
				return nil
			},
		},
	}
	return n.add(host, port, server, func() { _ = server.http.ServeTLS(server, "", "") })
}

// servePod answers as a pod at host:port, in the clear.
func (n *nodes) servePod(host, port string, handler http.Handler) error {
	server := &nodeServer{conns: make(chan net.Conn), closed: make(chan struct{}), addr: n.listener.Addr()}
	server.http = &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: 30 * time.Second}
	return n.add(host, port, server, func() { _ = server.http.Serve(server) })
}

func (n *nodes) add(host, port string, server *nodeServer, run func()) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := net.JoinHostPort(host, port)
	if n.servers[at] != nil {
		return errors.New(at + " is served already")
	}
	n.servers[at] = server
	go run()
	return nil
}

func (n *nodes) close() {
	n.listener.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, server := range n.servers {
		_ = server.http.Shutdown(ended)
		_ = server.http.Close()
	}
}
