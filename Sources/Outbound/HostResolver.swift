internal import NIOPosix
import Support
internal import Synchronization

/// Resolves names with the system's resolver, on its own threads because it blocks. Any thread may ask.
///
/// Each name has one lookup at a time, shared by all callers. A name server that does not answer for one name holds one thread, not all.
final class HostResolver: Sendable {
    /// Addresses of 4 or 16 bytes in network order, by the system's preference; or the reason why there are none.
    typealias Answer = Result<[[UInt8]], LookupFailure>

    private struct State {
        /// Callers that wait for a name being looked up.
        var waiting: [String: [Waiter]] = [:]
        var known: [String: (addresses: [[UInt8]], until: ContinuousClock.Instant)] = [:]
    }

    private let state = Mutex(State())
    private let lookup: @Sendable (String) -> Answer

    /// Concurrent lookups. Each needs a thread.
    static let maxLookups = 16
    /// Separate from Dispatch's threads. Those run all tasks on Linux, so lookups that hang would stall every task of the process. Started
    /// with the first lookup and kept.
    private static let threads: NIOThreadPool = {
        let threads = NIOThreadPool(numberOfThreads: HostResolver.maxLookups)
        threads.start()
        return threads
    }()
    private static let maxKnown = 256
    /// Lifetime of cached answers. Caching is safe because connections use the checked addresses; a moved service is found soon enough.
    private static let keptFor = Duration.seconds(10)

    /// `lookup` may block; it is the system's resolver except in tests.
    init(lookup: @escaping @Sendable (String) -> Answer = SystemResolver.lookup) { self.lookup = lookup }

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

    /// Forgets a cached answer whose addresses were unreachable; the next caller looks it up again.
    func forget(_ name: String) { self.state.withLock { _ = $0.known.removeValue(forKey: name) } }

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

/// A waiting caller, resumed once: by the lookup or by cancellation, whichever is first.
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
