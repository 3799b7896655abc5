// Bulk data over quic-go: a server sends as many zeros as its client asks for, on one stream.
//
//	weir-quic-go server ADDRESS CERTIFICATE KEY QLOG-FOLDER
//	weir-quic-go client ADDRESS BYTES
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlogwriter"
)

const (
	protocol = "weir"
	piece    = 64 << 10
	// More than any path here holds.
	window = 64 << 20
	usage  = "usage: weir-quic-go server ADDRESS CERTIFICATE KEY QLOG-FOLDER | client ADDRESS BYTES"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(words []string) error {
	switch {
	case len(words) == 5 && words[0] == "server":
		return serve(words[1], words[2], words[3], words[4])
	case len(words) == 3 && words[0] == "client":
		bytes, err := strconv.ParseUint(words[2], 10, 64)
		if err != nil {
			return err
		}
		return fetch(words[1], bytes)
	}
	return errors.New(usage)
}

// serve answers one connection.
func serve(address, certificate, key, qlogs string) error {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	settings := &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{protocol}}
	config, logged := config(), make(chan struct{})
	config.Tracer = func(_ context.Context, isClient bool, id quic.ConnectionID) qlogwriter.Trace {
		file, err := os.Create(filepath.Join(qlogs, "server.sqlog"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			close(logged)
			return nil
		}
		trace := qlogwriter.NewConnectionFileSeq(&log{bufio.NewWriter(file), file, logged}, isClient, id)
		go trace.Run()
		return trace
	}
	listener, err := quic.ListenAddr(address, settings, config)
	if err != nil {
		return err
	}
	connection, err := listener.Accept(context.Background())
	if err != nil {
		return err
	}
	stream, err := connection.AcceptStream(context.Background())
	if err != nil {
		return err
	}
	var request [8]byte
	if _, err := io.ReadFull(stream, request[:]); err != nil {
		return err
	}
	zeros := make([]byte, piece)
	for left := binary.BigEndian.Uint64(request[:]); left > 0; {
		sent, err := stream.Write(zeros[:min(left, piece)])
		if err != nil {
			return err
		}
		left -= uint64(sent)
	}
	if err := stream.Close(); err != nil {
		return err
	}
	<-connection.Context().Done()
	<-logged
	return nil
}

func fetch(address string, bytes uint64) error {
	// Any certificate: both ends belong to one measurement.
	settings := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
	connection, err := quic.DialAddr(context.Background(), address, settings, config())
	if err != nil {
		return err
	}
	stream, err := connection.OpenStreamSync(context.Background())
	if err != nil {
		return err
	}
	if _, err := stream.Write(binary.BigEndian.AppendUint64(nil, bytes)); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	received, err := io.Copy(io.Discard, stream)
	if err != nil {
		return err
	}
	fmt.Printf("{\"bytes\": %d}\n", received)
	return connection.CloseWithError(0, "")
}

func config() *quic.Config {
	return &quic.Config{
		InitialStreamReceiveWindow:     window,
		MaxStreamReceiveWindow:         window,
		InitialConnectionReceiveWindow: window,
		MaxConnectionReceiveWindow:     window,
	}
}

// log is a qlog's file, which says when it is complete.
type log struct {
	*bufio.Writer
	file   *os.File
	closed chan<- struct{}
}

func (l *log) Close() error {
	defer close(l.closed)
	if err := l.Flush(); err != nil {
		return err
	}
	return l.file.Close()
}
