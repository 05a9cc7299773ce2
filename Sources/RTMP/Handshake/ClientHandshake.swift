package import NIOCore

/// The client's side of the handshake (RTMP 1.0 §5.2).
///
/// ```
/// start() → C0 C1 out; waitingS1 --S0 S1--> (C2 out) waitingS2 --S2--> done
/// ```
package struct ClientHandshake {
    /// The handshake to offer.
    package enum Kind: Sendable, Equatable {
        case simple
        /// With a digest at the position of scheme 0 or 1.
        case digest(scheme: Int)
    }

    private enum State {
        case waitingS1
        case waitingS2
        case done
    }

    private let kind: Kind
    private var state = State.waitingS1
    private var received = ByteBuffer()
    /// The digest in our C1, which S2 must answer.
    private var digest: [UInt8]?
    private var serverSentDigest = false

    package init(kind: Kind = .simple) { self.kind = kind }

    package var isDone: Bool { if case .done = self.state { true } else { false } }

    /// Returns C0 and C1.
    package mutating func start(random: (Int) -> [UInt8]) -> ByteBuffer {
        var c1 = random(HandshakeDigest.packetLength)
        c1.replaceSubrange(0..<8, with: [UInt8](repeating: 0, count: 8))
        if case .digest(let scheme) = self.kind {
            c1.replaceSubrange(4..<8, with: [10, 0, 45, 2])
            self.digest = HandshakeDigest.sign(&c1, scheme: scheme == 0 ? .digestFirst : .digestSecond, side: .client)
        }
        var out = ByteBuffer()
        out.reserveCapacity(1 + c1.count)
        out.writeInteger(UInt8(3))
        out.writeBytes(c1)
        return out
    }

    /// Consumes bytes from the wire; returns C2 when it is due. Once ``isDone``, the rest of `bytes` belongs to the chunk stream.
    package mutating func receive(_ bytes: inout ByteBuffer, random: (Int) -> [UInt8]) throws(RTMPError) -> ByteBuffer? {
        var out: ByteBuffer?
        if case .waitingS1 = self.state {
            self.receive(&bytes, upTo: 1 + HandshakeDigest.packetLength)
            if let version = self.received.getInteger(at: self.received.readerIndex, as: UInt8.self), version != 3 {
                throw .unsupportedVersion(version)
            }
            guard self.received.readableBytes == 1 + HandshakeDigest.packetLength,
                self.received.readInteger(as: UInt8.self) != nil,
                let s1 = self.received.readBytes(length: HandshakeDigest.packetLength)
            else { return nil }
            if self.digest != nil, let found = HandshakeDigest.find(in: s1, side: .server) {
                self.serverSentDigest = true
                out = ByteBuffer(
                    bytes: HandshakeDigest.answer(random: random(HandshakeDigest.packetLength), to: found.digest, side: .client))
            } else {
                out = ByteBuffer(bytes: s1)
            }
            self.received = ByteBuffer()
            self.state = .waitingS2
        }
        if case .waitingS2 = self.state {
            self.receive(&bytes, upTo: HandshakeDigest.packetLength)
            guard self.received.readableBytes == HandshakeDigest.packetLength,
                let s2 = self.received.readBytes(length: HandshakeDigest.packetLength)
            else { return out }
            self.received = ByteBuffer()
            self.state = .done
            if self.serverSentDigest, let digest = self.digest, !HandshakeDigest.isAnswer(s2, to: digest, side: .server) {
                throw .handshakeDigestMismatch
            }
        }
        return out
    }

    private mutating func receive(_ bytes: inout ByteBuffer, upTo total: Int) {
        guard var part = bytes.readSlice(length: min(total - self.received.readableBytes, bytes.readableBytes)) else { return }
        self.received.writeBuffer(&part)
    }
}
