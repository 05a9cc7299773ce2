package import NIOCore

/// The server's side of the handshake (RTMP 1.0 §5.2), simple or with digests, depending on the client.
///
/// ```
/// waitingC1 --C0 C1--> (S0 S1 S2 out) waitingC2 --C2--> done
/// ```
/// Owned by one connection until done; pure: randomness is an argument.
package struct ServerHandshake {
    private enum State {
        case waitingC1
        case waitingC2
        case done
    }

    private var state = State.waitingC1
    private var received = ByteBuffer()

    package init() {}

    package var isDone: Bool { if case .done = self.state { true } else { false } }

    /// Consumes bytes from the wire; returns the bytes to send, if any. Once ``isDone``, the rest of `bytes` belongs to the chunk stream.
    /// - Parameter random: returns the given number of random bytes.
    package mutating func receive(
        _ bytes: inout ByteBuffer, random: (Int) -> [UInt8]
    ) throws(RTMPError) -> ByteBuffer? {
        var out: ByteBuffer?
        if case .waitingC1 = self.state {
            self.receive(&bytes, upTo: 1 + HandshakeDigest.packetLength)
            try self.checkVersion()
            guard self.received.readableBytes == 1 + HandshakeDigest.packetLength,
                self.received.readInteger(as: UInt8.self) != nil,
                let c1 = self.received.readBytes(length: HandshakeDigest.packetLength)
            else { return nil }
            out = Self.answer(to: c1, random: random)
            self.received = ByteBuffer()
            self.state = .waitingC2
        }
        if case .waitingC2 = self.state {
            // C2 is counted but not verified: several encoders send zeros or their own C1 again.
            self.receive(&bytes, upTo: HandshakeDigest.packetLength)
            if self.received.readableBytes == HandshakeDigest.packetLength {
                self.received = ByteBuffer()
                self.state = .done
            }
        }
        return out
    }

    private mutating func receive(_ bytes: inout ByteBuffer, upTo total: Int) {
        guard var part = bytes.readSlice(length: min(total - self.received.readableBytes, bytes.readableBytes)) else { return }
        self.received.writeBuffer(&part)
    }

    private func checkVersion() throws(RTMPError) {
        guard let version = self.received.getInteger(at: self.received.readerIndex, as: UInt8.self), version != 3 else { return }
        switch version {
        case UInt8(ascii: "G"), UInt8(ascii: "P"), UInt8(ascii: "H"), UInt8(ascii: "O"), UInt8(ascii: "D"), UInt8(ascii: "C"):
            throw .notRTMP("an HTTP request")
        case 0x16: throw .notRTMP("a TLS hello")
        default: throw .unsupportedVersion(version)
        }
    }

    private static func answer(to c1: [UInt8], random: (Int) -> [UInt8]) -> ByteBuffer {
        var out = ByteBuffer()
        out.reserveCapacity(1 + 2 * HandshakeDigest.packetLength)
        out.writeInteger(UInt8(3))
        // Bytes 4–7 of C1 are zero in a simple handshake (RTMP 1.0 §5.2.3) and a Flash version in a digest one.
        if c1[4..<8].contains(where: { $0 != 0 }), let (scheme, digest) = HandshakeDigest.find(in: c1, side: .client) {
            var s1 = random(HandshakeDigest.packetLength)
            s1.replaceSubrange(0..<8, with: [0, 0, 0, 0, 4, 5, 0, 1])
            _ = HandshakeDigest.sign(&s1, scheme: scheme, side: .server)
            out.writeBytes(s1)
            out.writeBytes(HandshakeDigest.answer(random: random(HandshakeDigest.packetLength), to: digest, side: .server))
        } else {
            // ffmpeg looks for a digest unless S1's bytes 4–7 are zero.
            out.writeRepeatingByte(0, count: 8)
            out.writeBytes(random(HandshakeDigest.packetLength - 8))
            out.writeBytes(c1)
        }
        return out
    }
}
