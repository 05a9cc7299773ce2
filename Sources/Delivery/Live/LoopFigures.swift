package import Relay

/// Bytes that the present connections of one event loop have sent and received so far, by stream. A value; made a few times a minute.
package struct LoopFigures: Sendable {
    package struct Bytes: Sendable, Equatable {
        package let path: String
        /// From the present publishers: media, without the protocol's headers.
        package var received: UInt64 = 0
        /// To the present viewers.
        package var sent: UInt64 = 0
    }

    /// Streams that somebody publishes or plays on this loop.
    package private(set) var streams: [ObjectIdentifier: Bytes] = [:]
    /// Present connections by protocol.
    package private(set) var connections: [SessionSnapshot.Transport: Int] = [:]

    package init() {}

    package mutating func connected(by transport: SessionSnapshot.Transport) { self.connections[transport, default: 0] += 1 }

    package mutating func sent(_ bytes: UInt64, of stream: Relay.Stream) {
        self.streams[ObjectIdentifier(stream), default: Bytes(path: stream.path)].sent &+= bytes
    }

    package mutating func received(_ bytes: UInt64, of stream: Relay.Stream) {
        self.streams[ObjectIdentifier(stream), default: Bytes(path: stream.path)].received &+= bytes
    }
}

extension LoopContext {
    /// Figures of all connections of the loop. On the loop.
    package func figures() -> LoopFigures {
        var figures = LoopFigures()
        self.countConnections(into: &figures)
        return figures
    }
}
