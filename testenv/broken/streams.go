package main

import (
	"google.golang.org/grpc"

	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// withheld does not send the events that drop names.
type withheld struct {
	grpc.ServerStream
	drop func(*pb.ApplyEvent) bool
}

func neverFinished(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(service, withheld{stream, func(e *pb.ApplyEvent) bool { return e.GetFinished() != nil }})
}

func neverChanged(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(service, withheld{stream, func(e *pb.ApplyEvent) bool { return e.GetChanged() != nil }})
}

func (s withheld) SendMsg(message any) error {
	if event, ok := message.(*pb.ApplyEvent); ok && s.drop(event) {
		return nil
	}
	return s.ServerStream.SendMsg(message)
}

// repeated sends finished twice.
type repeated struct{ grpc.ServerStream }

func finishedTwice(service any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(service, repeated{stream})
}

func (s repeated) SendMsg(message any) error {
	if event, ok := message.(*pb.ApplyEvent); ok && event.GetFinished() != nil {
		if err := s.ServerStream.SendMsg(message); err != nil {
			return err
		}
	}
	return s.ServerStream.SendMsg(message)
}
