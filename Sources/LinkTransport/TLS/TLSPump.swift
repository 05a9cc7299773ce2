import LibC
internal import Support
internal import Synchronization

/// Carries bytes between TLS and a socket pair, whose other end librtmp uses. A thread of its own.
///
///     link's thread, librtmp ── socket pair ── TLSPump ── TLS ── server
///
/// Each direction holds one buffer at most, so back-pressure passes through.
final class TLSPump: Sendable {
    /// Buffer bytes per direction.
    private static let bufferBytes = 64 << 10
    /// Milliseconds to flush pending bytes after the link has closed its end.
    private static let flushMs: Int64 = 2_000

    private let control: LinkControl
    private let problem = Mutex<String?>(nil)
    private let thread = Mutex<LinkThread?>(nil)

    private init(control: LinkControl) { self.control = control }

    /// The error that broke the TLS connection, if any.
    var failure: String? { self.problem.withLock { $0 } }

    struct Started {
        let pump: TLSPump
        /// The link's end of the pair: blocking, registered with the control.
        let descriptor: Int32
        /// "TLSv1.3 TLS_AES_256_GCM_SHA384"
        let version: String
    }

    /// Does the TLS handshake on the link's thread, then starts the pump's thread. That thread closes `network` in the end. When this
    /// throws, `network` is closed already.
    static func start(
        _ network: Int32, url: LinkURL, options: LinkOptions, control: LinkControl, until endMs: Int64
    ) throws(LinkError) -> Started {
        do throws(LinkError) {
            System.setBlocking(network, false)
            let client = try TLSClient(network, url: url, caFile: options.caFile)
            try Self.handshake(client, network, url, control: control, until: endMs)
            let version = client.version
            guard let pair = System.socketPair() else { throw .system("no socket pair (\(System.lastError))") }
            System.setBlocking(pair.1, false)
            control.add(pair.0)
            control.add(pair.1)
            let pump = TLSPump(control: control)
            let far = pair.1
            guard let thread = LinkThread(name: "tls", joinable: true, { pump.run(client, network: network, link: far) }) else {
                control.close(pair.0)
                control.close(pair.1)
                throw .system("no thread for TLS")
            }
            pump.thread.withLock { $0 = thread }
            return Started(pump: pump, descriptor: pair.0, version: version)
        } catch {
            control.close(network)
            throw error
        }
    }

    /// Waits for the pump's thread, after the link's end was closed: two seconds at most.
    func join() { self.thread.exchange(nil)?.join() }

    private static func handshake(
        _ client: TLSClient, _ network: Int32, _ url: LinkURL, control: LinkControl, until endMs: Int64
    ) throws(LinkError) {
        while true {
            let events: Int32
            switch client.connect() {
            case .done: return
            case .needsReadable: events = Int32(POLLIN)
            case .needsWritable: events = Int32(POLLOUT)
            case .ended: throw .tls(origin: url.origin, why: "it closed the connection; is TLS spoken on that port?")
            case .failed(let words): throw .tls(origin: url.origin, why: client.verifyProblem ?? "\(words); is TLS spoken on that port?")
            }
            while try !control.wait(for: network, events, until: endMs) {
                guard System.nowMs() < endMs else { throw .tls(origin: url.origin, why: "its handshake took too long") }
            }
        }
    }

    // MARK: The pump's thread

    private func run(_ client: TLSClient, network: Int32, link: Int32) {
        var toLink = PumpBuffer(bytes: Self.bufferBytes)
        var toNetwork = PumpBuffer(bytes: Self.bufferBytes)
        var state = State()
        while !state.isOver {
            self.move(client, link, &toLink, &toNetwork, &state)
            guard !state.isOver else { break }
            var set = [pollfd(fd: network, events: 0, revents: 0), pollfd(fd: link, events: 0, revents: 0)]
            if !state.networkEnded {
                if toLink.isEmpty { set[0].events |= state.readNeeds }
                if !toNetwork.isEmpty { set[0].events |= state.writeNeeds }
            }
            if !toLink.isEmpty { set[1].events |= Int16(POLLOUT) }
            if toNetwork.isEmpty, !state.linkEnded { set[1].events |= Int16(POLLIN) }
            // poll reports hang-ups even without requested events, again and again, so descriptors without requested events are left out. The link's
            // descriptor stays in, since it may close while the network accepts nothing.
            if set[0].events == 0 { set[0].fd = -1 }
            if set[1].events == 0, state.linkEnded || state.flushEndMs > 0 { set[1].fd = -1 }
            let left = state.flushEndMs > 0 ? state.flushEndMs - System.nowMs() : 3_600_000
            guard left > 0 else { break }
            _ = System.poll(&set, timeoutMs: left)
            if set[1].revents & Int16(POLLHUP | POLLERR) != 0 { state.beginFlush() }
        }
        client.shutdown()
        self.control.close(network)
        self.control.close(link)
    }

    private struct State {
        var linkEnded = false
        var networkEnded = false
        var isOver = false
        /// The end of the flush by `System.nowMs`; 0 while the link is open.
        var flushEndMs: Int64 = 0
        var readNeeds = Int16(POLLIN)
        var writeNeeds = Int16(POLLOUT)

        mutating func beginFlush() {
            if self.flushEndMs == 0 { self.flushEndMs = System.nowMs() + TLSPump.flushMs }
        }
    }

    /// Moves all bytes that can move without waiting.
    private func move(_ client: TLSClient, _ link: Int32, _ toLink: inout PumpBuffer, _ toNetwork: inout PumpBuffer, _ state: inout State) {
        var moved = true
        while moved, !state.isOver {
            moved = false
            if toLink.isEmpty, !state.networkEnded { moved = self.readNetwork(client, &toLink, &state) || moved }
            if !toLink.isEmpty { moved = self.writeLink(link, &toLink, &state) || moved }
            if toNetwork.isEmpty, !state.linkEnded { moved = self.readLink(link, &toNetwork, &state) || moved }
            if !toNetwork.isEmpty { moved = self.writeNetwork(client, &toNetwork, &state) || moved }
            if state.networkEnded, toLink.isEmpty, !state.linkEnded {
                // Do not close yet: closing with unread bytes here discards what the link has not read.
                System.shutdownWriting(link)
                toNetwork.clear()
            }
            if state.linkEnded, toNetwork.isEmpty || state.networkEnded { state.isOver = true }
        }
    }

    private func readNetwork(_ client: TLSClient, _ toLink: inout PumpBuffer, _ state: inout State) -> Bool {
        self.note(toLink.fill { client.read($0) }, of: \.readNeeds, &state)
    }

    private func writeNetwork(_ client: TLSClient, _ toNetwork: inout PumpBuffer, _ state: inout State) -> Bool {
        guard !state.networkEnded else {
            toNetwork.clear()
            return true
        }
        return self.note(toNetwork.drain { client.write($0) }, of: \.writeNeeds, &state)
    }

    /// Notes the outcome of a call on the network's side, and what the same call waits for. Returns whether anything happened.
    private func note(_ outcome: TLSClient.Outcome, of needs: WritableKeyPath<State, Int16>, _ state: inout State) -> Bool {
        switch outcome {
        case .done: return true
        case .needsReadable: state[keyPath: needs] = Int16(POLLIN)
        case .needsWritable: state[keyPath: needs] = Int16(POLLOUT)
        case .ended:
            state.networkEnded = true
            return true
        case .failed(let words):
            self.problem.withLock { $0 = $0 ?? words }
            state.networkEnded = true
            return true
        }
        return false
    }

    private func readLink(_ link: Int32, _ toNetwork: inout PumpBuffer, _ state: inout State) -> Bool {
        let outcome = toNetwork.fill { buffer in
            switch System.receive(link, buffer) {
            case nil: .needsReadable
            case let count? where count > 0: .done(count)
            default: .ended
            }
        }
        switch outcome {
        case .done: return true
        case .ended:
            state.linkEnded = true
            state.beginFlush()
            return true
        default: return false
        }
    }

    private func writeLink(_ link: Int32, _ toLink: inout PumpBuffer, _ state: inout State) -> Bool {
        let outcome = toLink.drain { buffer in
            switch System.send(link, buffer) {
            case nil: .needsWritable
            case let count? where count >= 0: .done(count)
            default: .ended
            }
        }
        switch outcome {
        case .done: return true
        case .ended:
            // The link is gone or was cut; reading it will show its end.
            toLink.clear()
            return true
        default: return false
        }
    }
}

/// Bytes in transit in one direction: filled when empty, then drained. Used by one thread.
private struct PumpBuffer {
    private var bytes: [UInt8]
    private var start = 0
    private var end = 0

    init(bytes: Int) { self.bytes = [UInt8](repeating: 0, count: bytes) }

    var isEmpty: Bool { self.start == self.end }

    mutating func clear() {
        self.start = 0
        self.end = 0
    }

    mutating func fill(_ read: (UnsafeMutableRawBufferPointer) -> TLSClient.Outcome) -> TLSClient.Outcome {
        let outcome = self.bytes.withUnsafeMutableBytes(read)
        if case .done(let count) = outcome {
            self.start = 0
            self.end = min(count, self.bytes.count)
        }
        return outcome
    }

    mutating func drain(_ write: (UnsafeRawBufferPointer) -> TLSClient.Outcome) -> TLSClient.Outcome {
        let outcome = self.bytes.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[self.start..<self.end])) }
        if case .done(let count) = outcome { self.start = min(self.start + count, self.end) }
        return outcome
    }
}
