internal import NIOPosix
internal import Synchronization
internal import Upstream

/// Names to addresses by the system's resolver, on threads of its own since it blocks. Any thread may ask.
///
/// One lookup a name at a time, whoever asks: a name server that does not answer for one name holds one thread, not all.
final class HostResolver: Sendable {
    /// 4 or 16 bytes each, network order, the system's order of preference; a text says why there is none.
    typealias Answer = Result<[[UInt8]], LookupFailure>

    private struct State {
        /// Those who wait for a name that is being looked up.
        var waiting: [String: [Waiter]] = [:]
        var known: [String: (addresses: [[UInt8]], until: ContinuousClock.Instant)] = [:]
    }

    private let state = Mutex(State())
    private let lookup: @Sendable (String) -> Answer

    /// Names looked up at a time. Each takes a thread.
    static let maxLookups = 16
    /// Not Dispatch's: on Linux those are what tasks run on, and lookups that hang would hold up every task of the process. Made with the
    /// first lookup, kept for good.
    private static let threads: NIOThreadPool = {
        let threads = NIOThreadPool(numberOfThreads: HostResolver.maxLookups)
        threads.start()
        return threads
    }()
    private static let maxKnown = 256
    /// The addresses have been checked and are what is connected to, so holding on to them is safe; a moved service is found soon enough.
    private static let keptFor = Duration.seconds(10)

    /// `lookup` may block; it is the system's resolver but in tests.
    init(lookup: @escaping @Sendable (String) -> Answer = HostLookup.system) { self.lookup = lookup }

    /// Returns early, with a failure, when the task is cancelled.
    func addresses(of name: String) async -> Answer {
        let waiter = Waiter()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiter.wait(continuation)
                self.begin(name, waiter)
            }
        } onCancel: {
            waiter.resume(.failure(LookupFailure(why: "cancelled")))
        }
    }

    /// To be asked anew: what was known led nowhere.
    func forget(_ name: String) {
        self.state.withLock { _ = $0.known.removeValue(forKey: name) }
    }

    private enum Step {
        case known([[UInt8]])
        case lookUp, wait, tooMany
    }

    private func begin(_ name: String, _ waiter: Waiter) {
        let now = ContinuousClock.now
        let step: Step = self.state.withLock { state in
            if let known = state.known[name], now < known.until { return .known(known.addresses) }
            if state.waiting[name] != nil {
                state.waiting[name]?.append(waiter)
                return .wait
            }
            guard state.waiting.count < Self.maxLookups else { return .tooMany }
            state.waiting[name] = [waiter]
            return .lookUp
        }
        switch step {
        case .known(let addresses): waiter.resume(.success(addresses))
        case .wait: break
        case .tooMany: waiter.resume(.failure(LookupFailure(why: "\(Self.maxLookups) other names are being looked up")))
        case .lookUp:
            Self.threads.submit { _ in
                let answer = self.lookup(name)
                for waiter in self.end(name, answer) { waiter.resume(answer) }
            }
        }
    }

    private func end(_ name: String, _ answer: Answer) -> [Waiter] {
        self.state.withLock { state in
            if case .success(let addresses) = answer {
                if state.known.count >= Self.maxKnown { state.known.removeAll() }
                state.known[name] = (addresses, ContinuousClock.now + Self.keptFor)
            }
            return state.waiting.removeValue(forKey: name) ?? []
        }
    }
}

/// One who waits for an answer: resumed once, by the lookup or by cancellation, whichever is first.
private final class Waiter: Sendable {
    private enum State {
        case idle
        case waiting(CheckedContinuation<HostResolver.Answer, Never>)
        /// Cancelled before the wait began.
        case early(HostResolver.Answer)
        case done
    }

    private let state = Mutex(State.idle)

    func wait(_ continuation: CheckedContinuation<HostResolver.Answer, Never>) {
        let answer: HostResolver.Answer? = self.state.withLock { state in
            if case .early(let answer) = state {
                state = .done
                return answer
            }
            state = .waiting(continuation)
            return nil
        }
        if let answer { continuation.resume(returning: answer) }
    }

    func resume(_ answer: HostResolver.Answer) {
        let continuation: CheckedContinuation<HostResolver.Answer, Never>? = self.state.withLock { state in
            switch state {
            case .idle:
                state = .early(answer)
                return nil
            case .waiting(let continuation):
                state = .done
                return continuation
            case .early, .done: return nil
            }
        }
        continuation?.resume(returning: answer)
    }
}
