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

    /// Bytes in one protocol.
    package struct Traffic: Sendable, Equatable {
        package var received: UInt64 = 0
        package var sent: UInt64 = 0

        package init() {}

        package static func += (sum: inout Traffic, part: Traffic) {
            sum.received &+= part.received
            sum.sent &+= part.sent
        }
    }

    /// Streams that somebody publishes or plays on this loop; empty unless ``isByStream``.
    package private(set) var streams: [ObjectIdentifier: Bytes] = [:]
    /// Present connections by protocol.
    package private(set) var connections: [SessionSnapshot.Transport: Int] = [:]

    /// By protocol; of the present connections.
    package private(set) var traffic: [SessionSnapshot.Transport: Traffic] = [:]
    private let isByStream: Bool
    private var transport = SessionSnapshot.Transport.rtmp

    package init(isByStream: Bool = true) { self.isByStream = isByStream }

    /// Counts a connection; figures added after this call belong to its protocol.
    package mutating func connected(by transport: SessionSnapshot.Transport) {
        self.transport = transport
        self.connections[transport, default: 0] += 1
    }

    package mutating func sent(_ bytes: UInt64, of stream: Relay.Stream) {
        self.traffic[self.transport, default: Traffic()].sent &+= bytes
        guard self.isByStream else { return }
        self.streams[ObjectIdentifier(stream), default: Bytes(path: stream.path)].sent &+= bytes
    }

    package mutating func received(_ bytes: UInt64, of stream: Relay.Stream) {
        self.traffic[self.transport, default: Traffic()].received &+= bytes
        guard self.isByStream else { return }
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
