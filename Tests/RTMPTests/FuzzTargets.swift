import NIOCore
import RTMP
import Testing

/// Flips, cuts, repeats and rewrites bytes. Prefers edge values of lengths and counts.
struct Mutator {
    var generator: Seeded
    private static let edges: [UInt8] = [0x00, 0x01, 0x02, 0x7F, 0x80, 0xFE, 0xFF, 0x03, 0x08, 0x0A, 0x11, 0x16, 0x40, 0xC0, 0xC4, 0x04]

    init(seed: UInt64) { self.generator = Seeded(seed) }

    mutating func offset(in bytes: [UInt8]) -> Int {
        bytes.isEmpty ? 0 : Int(self.generator.next() % UInt64(bytes.count))
    }

    mutating func mutate(_ original: [UInt8]) -> [UInt8] {
        var bytes = original
        for _ in 0...Int(self.generator.next() % 4) {
            let at = self.offset(in: bytes)
            let choice = self.generator.next()
            let byte = UInt8(truncatingIfNeeded: choice >> 32)
            guard !bytes.isEmpty else { return [byte] }
            switch choice & 15 {
            case 0...2: bytes[at] ^= 1 << (byte & 7)
            case 3, 4: bytes[at] = Self.edges[Int(byte & 15)]
            case 5: bytes[at] = byte
            case 6: bytes[at] = bytes[at] &+ 1
            case 7: bytes[at] = bytes[at] &- 1
            case 8: bytes.remove(at: at)
            case 9: bytes.insert(Self.edges[Int(byte & 15)], at: at)
            case 10: bytes.removeLast(Int(byte) % bytes.count)
            case 11: bytes.insert(contentsOf: bytes[at...].prefix(Int(byte & 63)), at: at)
            case 12: for index in at..<min(at + 4, bytes.count) { bytes[index] = 0xFF }
            case 13: for index in at..<min(at + 3, bytes.count) { bytes[index] = 0 }
            case 14: bytes.removeSubrange(at..<min(at + Int(byte & 31), bytes.count))
            default: bytes.append(contentsOf: bytes[at...].prefix(64))
            }
        }
        return bytes
    }
}

/// Checks the decoder's limits after every read.
private func check(_ decoder: ChunkDecoder, _ limits: Limits, readBytes: Int) {
    // A header is at most 18 bytes; the decoder consumes everything else at once.
    #expect(decoder.waitingBytes < 18)
    #expect(decoder.receivedBytes <= UInt64(readBytes))
}

private func checkHeld(_ decoder: ChunkDecoder, _ limits: Limits, readBytes: Int) {
    let held = HeldMemory(decoder)
    #expect(held.partialBytes <= min(limits.partialBytes, readBytes))
    // Each unfinished message reserves at most 16 KiB before its bytes arrive; storage grows in powers of two.
    #expect(held.capacity <= limits.partialMessages * (16 << 10) + 2 * limits.partialBytes)
    #expect(held.streams <= limits.chunkStreams)
}

/// Feeds `bytes` to a decoder in two parts and passes each message to `receive`. Returns the first error of either.
private func feed(
    _ bytes: [UInt8], splitAt offset: Int, limits: Limits, _ receive: (Message, UInt64) throws(RTMPError) -> Void
) -> RTMPError? {
    var decoder = ChunkDecoder(limits: limits)
    var read = 0
    for part in [bytes[..<min(offset, bytes.count)], bytes[min(offset, bytes.count)...]] {
        decoder.append(ByteBuffer(bytes: part))
        read += part.count
        do throws(RTMPError) {
            while let message = try decoder.nextMessage() { try receive(message, decoder.receivedBytes) }
        } catch {
            #expect(!"\(error)".isEmpty)
            return error
        }
        check(decoder, limits, readBytes: read)
        if bytes.count & 15 == 0 { checkHeld(decoder, limits, readBytes: read) }
    }
    return nil
}

/// Returns the number of decoded messages, including those inside aggregates. The split must make no difference.
func fuzzChunks(_ bytes: [UInt8], splitAt offset: Int, limits: Limits) -> Int {
    var messages: [Message] = []
    var inner = 0
    let error = feed(bytes, splitAt: offset, limits: limits) { (message, _) throws(RTMPError) in
        messages.append(message)
        guard message.type == .aggregate else { return }
        var aggregate = Aggregate(message)
        do throws(RTMPError) {
            while try aggregate.next() != nil { inner += 1 }
        } catch {
            #expect(error == .malformedAggregate)
        }
    }
    if bytes.count & 3 == 0 {
        let whole = Decoded(bytes, limits: limits)
        #expect(whole == Decoded(messages, error: error), "split at \(offset): \(bytes)")
    }
    return messages.count + inner
}

/// Returns whether the handshake completed.
func fuzzServerHandshake(_ bytes: [UInt8], _ offset: Int) -> Bool {
    var server = ServerHandshake()
    var sent = 0
    for part in [bytes[..<min(offset, bytes.count)], bytes[min(offset, bytes.count)...]] {
        var part = ByteBuffer(bytes: part)
        do throws(RTMPError) {
            if !server.isDone, let answer = try server.receive(&part, random: { [UInt8](repeating: 7, count: $0) }) {
                sent += answer.readableBytes
            }
        } catch {
            switch error {
            case .unsupportedVersion, .notRTMP: break
            default: Issue.record("\(error)")
            }
            return false
        }
        #expect(server.isDone || part.readableBytes == 0)
    }
    #expect(sent == 0 || sent == 3073)
    #expect(server.isDone == (bytes.count >= 3073))
    return server.isDone
}

/// Returns whether the handshake completed.
func fuzzClientHandshake(_ bytes: [UInt8], _ offset: Int, random: [UInt8]) -> Bool {
    var client = ClientHandshake(kind: .digest(scheme: 0))
    _ = client.start { Array(random.prefix($0)) }
    for part in [bytes[..<min(offset, bytes.count)], bytes[min(offset, bytes.count)...]] where !client.isDone {
        var part = ByteBuffer(bytes: part)
        do throws(RTMPError) {
            _ = try client.receive(&part) { Array(random.prefix($0)) }
        } catch {
            switch error {
            case .unsupportedVersion, .handshakeDigestMismatch: break
            default: Issue.record("\(error)")
            }
            return false
        }
    }
    return client.isDone
}

/// Returns whether the bytes are a command. It must be the same after encoding and decoding.
func fuzzCommand(_ bytes: [UInt8], amf3: Bool) -> Bool {
    do throws(RTMPError) {
        let command = try Command(Message(amf3 ? 17 : 20, bytes), limits: AMFLimits())
        let again = try? Command(command.message(streamID: 0, amf3: amf3), limits: AMFLimits())
        #expect(again?.name == command.name && again?.transaction.bitPattern == command.transaction.bitPattern)
        #expect(again?.object == command.object && again?.arguments == command.arguments, "\(bytes)")
        return true
    } catch {
        guard case .malformedCommand = error else {
            Issue.record("\(error)")
            return false
        }
        return false
    }
}

/// Returns whether the session connected.
func fuzzServerSession(_ bytes: [UInt8], splitAt offset: Int, limits: Limits) -> Bool {
    var session = ServerSession(limits: limits)
    var accept = bytes.count
    let error = feed(bytes, splitAt: offset, limits: limits) { (message, received) throws(RTMPError) in
        try session.receive(message)
        session.bytesReceived(received)
        var outputs = 0
        while let output = session.nextOutput() {
            outputs += 1
            accept &+= 1
            switch output {
            case .connect: session.acceptConnect()
            case .publish(let id, _):
                // Accepts, refuses or leaves undecided; now and then ends the publish afterwards.
                if accept % 3 == 0 { session.rejectPublish(id, Status("x", "x")) }
                if accept % 3 == 1 { session.acceptPublish(id) }
                if accept % 7 == 1 { session.publishEnded(id, Status("x", "x")) }
            case .play(let id, _):
                if accept % 3 == 0 { session.rejectPlay(id, Status("x", "x")) }
                if accept % 3 == 1 { session.acceptPlay(id) }
                if accept % 5 == 1 { session.publisherArrived(id) }
                if accept % 7 == 1 { session.publisherLeft(id) }
            case .send(let message):
                #expect(message.payload.readableBytes < 2048)
            default: break
            }
        }
        // One message causes at most two outputs per open message stream, and 16 more.
        #expect(outputs <= 2 * limits.messageStreams + 16)
    }
    if case .handshakeDigestMismatch? = error { Issue.record("\(bytes)") }
    return session.isConnected
}

/// Returns whether the session saw `connect` accepted.
func fuzzClientSession(_ bytes: [UInt8], splitAt offset: Int, limits: Limits) -> Bool {
    var session = ClientSession(limits: limits)
    session.connect(app: "live", tcUrl: "rtmp://h/live")
    session.createStream()
    session.publish("cam", on: 1)
    session.play("cam", on: 2)
    while session.nextOutput() != nil {}
    var connected = false
    _ = feed(bytes, splitAt: offset, limits: limits) { (message, received) throws(RTMPError) in
        try session.receive(message)
        session.bytesReceived(received)
        var outputs = 0
        while let output = session.nextOutput() {
            outputs += 1
            if case .connected = output { connected = true }
        }
        #expect(outputs <= 2)
    }
    return connected
}
