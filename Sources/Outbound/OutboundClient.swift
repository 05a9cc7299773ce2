internal import AsyncHTTPClient
import LibC
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import NIOSSL
package import ServerConfiguration
internal import ServiceLifecycle
package import Support

/// Sends the server's own HTTP requests: hooks and webhooks. Shared by all; any thread.
///
/// A target must be `http` or `https` and its address must pass ``TargetRules``. Names are resolved and their addresses checked here, and
/// the connection goes to a checked address, so a name that points elsewhere a moment later gains nothing. TLS and the Host header still
/// use the name. Redirects are not followed, proxies in the environment are not used, and an answer has at most 64 KiB.
package final class OutboundClient: Service, Sendable {
    private let rules: @Sendable () -> TargetRules
    private let resolver: HostResolver
    let pool: OutboundPool

    /// Largest body of an answer, in bytes.
    package static let maxAnswerBytes = 64 << 10
    /// Addresses of one name to try, one after another, while connecting fails.
    private static let maxAttempts = 3

    package init(_ config: Live<ServerConfig>) {
        self.rules = { TargetRules(allowPrivate: config.outbound.allowPrivate) }
        self.resolver = HostResolver()
        self.pool = OutboundPool(tls: nil)
    }

    /// `tls`: settings for checking certificates; nil uses the system's authorities.
    init(config: ServerConfig.Outbound, resolver: HostResolver, tls: TLSConfiguration? = nil) {
        self.rules = { TargetRules(allowPrivate: config.allowPrivate) }
        self.resolver = resolver
        self.pool = OutboundPool(tls: tls)
    }

    /// Runs until the group shuts down, which abandons requests in flight.
    package func run() async throws {
        try? await gracefulShutdown()
        await self.shutdown()
    }

    /// Closes all connections; later requests fail.
    package func shutdown() async { await self.pool.shutdown() }

    /// Sends `body` and waits for the whole answer. `timeout` covers all of it: lookup, connection, answer.
    ///
    /// `headers` are added to Host, Content-Length and User-Agent. Requests of one `pool` share connections (64 per host), so a target that
    /// does not answer delays only its own pool.
    package func post(
        url: String, headers: [(name: String, value: String)], body: [UInt8], timeout: Duration, pool: String = ""
    ) async -> Result<OutboundAnswer, OutboundError> {
        let target: OutboundURL
        do throws(OutboundError) {
            target = try OutboundURL(parsing: url)
        } catch {
            return .failure(error)
        }
        return await Self.within(timeout, target) { () throws(OutboundError) in try await self.send(target, headers, body, timeout, pool) }
    }

    /// Runs `body`, and cancels it when the time is over.
    static func within<Answer: Sendable>(
        _ timeout: Duration, _ target: OutboundURL, _ body: @escaping @Sendable () async throws(OutboundError) -> Answer
    ) async -> Result<Answer, OutboundError> {
        await withTaskGroup(of: Result<Answer, OutboundError>.self) { tasks in
            tasks.addTask {
                do throws(OutboundError) {
                    return .success(try await body())
                } catch {
                    return .failure(error)
                }
            }
            tasks.addTask {
                do {
                    try await Task.sleep(for: timeout)
                } catch {
                    return .failure(.cancelled)
                }
                return .failure(.timedOut(origin: target.origin, milliseconds: Int64(timeout / .milliseconds(1))))
            }
            let first = await tasks.next() ?? .failure(.cancelled)
            tasks.cancelAll()
            return first
        }
    }

    private func send(
        _ target: OutboundURL, _ headers: [(name: String, value: String)], _ body: [UInt8], _ timeout: Duration, _ pool: String
    ) async throws(OutboundError) -> OutboundAnswer {
        try await self.reach(target, at: try await self.checkedAddresses(of: target)) { (address) throws(OutboundError) in
            try await self.send(target, to: address, headers, body, timeout, pool)
        }
    }

    /// Sends to one address after another until one can be connected to.
    func reach<Answer: Sendable>(
        _ target: OutboundURL, at addresses: [[UInt8]], _ send: @Sendable ([UInt8]) async throws(OutboundError) -> Answer
    ) async throws(OutboundError) -> Answer {
        var failure = OutboundError.unresolved(host: target.hostText, why: "no address")
        for address in addresses.prefix(Self.maxAttempts) {
            do throws(OutboundError) {
                return try await send(address)
            } catch {
                // Nothing was sent yet, so try the next address. After any other error the request may have had its effect.
                guard case .connectFailed = error else { throw error }
                failure = error
            }
        }
        if case .name(let name) = target.host { self.resolver.forget(name) }
        throw failure
    }

    /// All addresses of the target's host, in order.
    func addresses(of target: OutboundURL) async throws(OutboundError) -> [[UInt8]] {
        switch target.host {
        case .address(let bytes): return [bytes]
        case .name(let name):
            switch await self.resolver.addresses(of: name) {
            case .success(let addresses): return addresses
            case .failure(let failure): throw .unresolved(host: name, why: failure.why)
            }
        }
    }

    /// The addresses that may be connected to, in order. Throws if there are none.
    private func checkedAddresses(of target: OutboundURL) async throws(OutboundError) -> [[UInt8]] {
        let all = try await self.addresses(of: target)
        let rules = self.rules()
        let good = all.filter { rules.objection(to: $0) == nil }
        guard good.isEmpty else { return good }
        let first = all.first ?? []
        throw .forbiddenTarget(
            host: target.hostText,
            address: first.count == 16 && target.hostText.hasPrefix("[") ? target.hostText : IPText.text(first),
            why: rules.objection(to: first) ?? "without an address")
    }

    private func send(
        _ target: OutboundURL, to address: [UInt8], _ headers: [(name: String, value: String)], _ body: [UInt8], _ timeout: Duration,
        _ pool: String
    ) async throws(OutboundError) -> OutboundAnswer {
        var request = HTTPClientRequest(url: target.text)
        request.method = .POST
        request.headers.add(name: "User-Agent", value: "earshot")
        for header in headers { request.headers.replaceOrAdd(name: header.name, value: header.value) }
        request.body = .bytes(ByteBuffer(bytes: body))
        guard let lease = self.pool.lease(target, address: address, pool: pool) else { throw .cancelled }
        defer { self.pool.giveBack(lease) }
        // `post` enforces the caller's timeout by cancelling this. The client needs a deadline of its own, which must be later.
        let deadline = NIODeadline.now() + .nanoseconds(Int64((min(timeout, .seconds(86_400)) + .seconds(5)) / .nanoseconds(1)))
        let response: HTTPClientResponse
        do {
            response = try await Self.execute(request, lease, deadline)
        } catch {
            throw Self.failure(error, target)
        }
        var answer: [UInt8] = []
        do {
            for try await part in response.body {
                guard answer.count + part.readableBytes <= Self.maxAnswerBytes else {
                    throw OutboundError.answerTooLarge(origin: target.origin, limit: Self.maxAnswerBytes)
                }
                answer += part.readableBytesView
            }
        } catch let error as OutboundError {
            throw error
        } catch {
            throw .broken(origin: target.origin, why: Self.words(error))
        }
        guard !Task.isCancelled else { throw .cancelled }
        return OutboundAnswer(status: Int(response.status.code), body: answer)
    }

    /// Where a connection of an earlier request had closed, and this one was not sent whole: once more on another.
    private static func execute(
        _ request: HTTPClientRequest, _ lease: OutboundPool.Lease, _ deadline: NIODeadline
    ) async throws -> HTTPClientResponse {
        do {
            return try await lease.client.execute(request, deadline: deadline)
        } catch ChannelError.ioOnClosedChannel {
            return try await lease.client.execute(request, deadline: deadline)
        }
    }

    /// Translates an error. Only `connectFailed` means that nothing was sent.
    static func failure(_ error: any Error, _ target: OutboundURL) -> OutboundError {
        if error is CancellationError { return .cancelled }
        if let error = error as? HTTPClientError {
            switch error {
            case .cancelled, .alreadyShutdown: return .cancelled
            case .connectTimeout, .tlsHandshakeTimeout, .getConnectionFromPoolTimeout:
                return .connectFailed(origin: target.origin, why: "it took too long")
            case .invalidURL, .emptyHost, .emptyScheme: return .badURL("cannot be read; expected \(OutboundURL.expected)")
            default: return .broken(origin: target.origin, why: error.shortDescription)
            }
        }
        let isBeforeRequest =
            switch error {
            // ETIMEDOUT is of a connection that stood: the client gives up connecting long before the kernel does.
            case let error as IOError: [ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EADDRNOTAVAIL].contains(error.errnoCode)
            case let error as NIOSSLError: if case .handshakeFailed = error { true } else { false }
            case let error as NIOSSLExtraError: error == .failedToValidateHostname
            case let error as ChannelError: if case .connectTimeout = error { true } else { false }
            default: error is NIOConnectionError
            }
        let why = Self.words(error)
        return isBeforeRequest ? .connectFailed(origin: target.origin, why: why) : .broken(origin: target.origin, why: why)
    }

    private static func words(_ error: any Error) -> String {
        switch error {
        case let error as NIOConnectionError: error.connectionErrors.first.map { Self.words($0.error) } ?? "unreachable"
        case let error as IOError: errorText(error.errnoCode)
        case let error as HTTPClientError: error.shortDescription
        case let error as NIOSSLExtraError where error == .failedToValidateHostname: "its certificate is for another name"
        case is HTTPParserError: "it is not HTTP"
        default: "\(error)"
        }
    }
}
