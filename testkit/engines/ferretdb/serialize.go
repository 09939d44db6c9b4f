package ferretdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// serializer is a proxy in front of FerretDB that serializes the write commands of all clients.
type serializer struct {
	listener net.Listener
	target   string
	writing  sync.Mutex // held from a write command to its reply

	mu      sync.Mutex
	conns   map[net.Conn]bool
	stopped bool
	running sync.WaitGroup
}

func newSerializer(addr, target string) (*serializer, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	s := &serializer{listener: l, target: target, conns: make(map[net.Conn]bool)}
	s.running.Go(s.accept)
	return s, nil
}

// stop closes all connections.
func (s *serializer) stop() {
	s.mu.Lock()
	s.stopped = true
	_ = s.listener.Close()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.running.Wait()
}

func (s *serializer) accept() {
	for {
		client, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.running.Go(func() {
			server, err := net.Dial("tcp", s.target)
			if err != nil {
				_ = client.Close()
				return
			}
			if s.keep(client, server) {
				_ = s.serve(client, server) // either side has disconnected
			}
			s.drop(client, server)
		})
	}
}

// keep registers connections that stop closes; it reports false after stop.
func (s *serializer) keep(conns ...net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range conns {
		s.conns[c] = true
	}
	return !s.stopped
}

func (s *serializer) drop(conns ...net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range conns {
		delete(s.conns, c)
		_ = c.Close()
	}
}

// serve forwards requests and replies. A client of MongoDB's wire protocol awaits the reply before its next
// request on a connection.
func (s *serializer) serve(client, server net.Conn) error {
	for {
		request, err := readMessage(client)
		if err != nil {
			return err
		}
		if err := s.exchange(client, server, request); err != nil {
			return err
		}
	}
}

func (s *serializer) exchange(client, server net.Conn, request message) error {
	if request.writes() {
		s.writing.Lock()
		defer s.writing.Unlock()
	}
	if _, err := server.Write(request); err != nil {
		return err
	}
	for more := !request.moreToCome(); more; { // a request with the flag has no reply; a reply with it has a successor
		reply, err := readMessage(server)
		if err != nil {
			return err
		}
		if _, err := client.Write(reply); err != nil {
			return err
		}
		more = reply.moreToCome()
	}
	return nil
}

// message is one message of MongoDB's wire protocol, little-endian: length, requestID, responseTo and opCode
// of four bytes each, then for OP_MSG four bytes of flags and the sections, of which ours begin with the
// command's document (kind 0).
type message []byte

const (
	headerLength   = 16
	maxMessage     = 48_000_000 // MongoDB's maxMessageSizeBytes
	opMsg          = 2013
	flagMoreToCome = 1 << 1
	commandAt      = headerLength + 4 + 1
)

func readMessage(from io.Reader) (message, error) {
	var length [4]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n < headerLength || n > maxMessage {
		return nil, errors.New("the message has an impossible length")
	}
	m := make(message, n)
	copy(m, length[:])
	_, err := io.ReadFull(from, m[4:])
	return m, err
}

func (m message) isMsg() bool {
	return len(m) > commandAt && binary.LittleEndian.Uint32(m[12:]) == opMsg
}

func (m message) moreToCome() bool {
	return m.isMsg() && binary.LittleEndian.Uint32(m[headerLength:])&flagMoreToCome != 0
}

// writes reports whether the message is a write command.
func (m message) writes() bool {
	if !m.isMsg() || m[commandAt-1] != 0 {
		return false
	}
	command, err := bson.Raw(m[commandAt:]).IndexErr(0)
	return err == nil && writes(command.Key())
}

func writes(command string) bool {
	switch command {
	case "insert", "update", "delete", "findAndModify", "createIndexes":
		return true
	}
	return false
}
