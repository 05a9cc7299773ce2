import AsyncHTTPClient
import NIOCore
package import NIOHTTP1
import NIOPosix
import NIOSSL
import Rooms
package import Support

/// Calls the server's `/api/v1`. A value; each call opens a connection, since a command makes one or a few.
package struct APIClient: Sendable {
    package let server: ServerAddress
    package let token: AccessToken
    package let timeout: Span

    /// Longest answer, in bytes.
    package static let longestAnswer = 16 << 20

    package func get(_ path: [String], _ query: [(String, String?)] = []) async throws -> JSONValue {
        try await self.call(.GET, path, query, nil)
    }

    package func post(_ path: [String], _ body: [String: JSONValue] = [:]) async throws -> JSONValue {
        try await self.call(.POST, path, [], .of(body))
    }

    package func patch(_ path: [String], _ body: [String: JSONValue]) async throws -> JSONValue {
        try await self.call(.PATCH, path, [], .of(body))
    }

    package func delete(_ path: [String]) async throws -> JSONValue {
        try await self.call(.DELETE, path, [], nil)
    }

    /// A one-time code for the console, which is not part of `/api/v1`.
    package func consoleCode() async throws -> JSONValue {
        try await self.call(.POST, ["console", "code"], [], .object([]), below: [])
    }

    /// Returns the answer's `data`.
    ///
    /// - Throws: ``CommandFailure``.
    private func call(
        _ method: HTTPMethod, _ path: [String], _ query: [(String, String?)], _ body: JSONValue?, below: [String] = ["api", "v1"]
    ) async throws -> JSONValue {
        let target = self.server.target(below + path, query)
        var request = HTTPClientRequest(url: "\(self.server.isTLS ? "https" : "http")://\(self.server.authority)\(target)")
        request.method = method
        request.headers = self.headers
        if let body {
            request.headers.add(name: "Content-Type", value: "application/json")
            request.body = .bytes(ByteBuffer(string: body.text))
        }
        let status: HTTPResponseStatus
        let bytes: ByteBuffer
        do {
            (status, bytes) = try await self.exchange(request)
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw self.unreachable(error)
        }
        guard let answer = try? JSONValue.answer(bytes.readableBytesView), case .object = answer else {
            throw CommandFailure(.failed, "\(self.server) answered \(status.code), but not as an Earshot server does; check --server")
        }
        guard (200..<300).contains(status.code) else {
            throw CommandFailure.refused(status, body: answer, server: self.server, token: self.token)
        }
        return answer["data"] ?? .null
    }

    /// Headers of every request, also of the event feed's.
    package var headers: HTTPHeaders {
        var headers: HTTPHeaders = ["User-Agent": AuditTool.commandAgent, "Accept": "application/json"]
        if let secret = self.token.secret { headers.add(name: "Authorization", value: "Bearer \(secret)") }
        return headers
    }

    private func exchange(_ request: HTTPClientRequest) async throws -> (HTTPResponseStatus, ByteBuffer) {
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.timeout.connect = .milliseconds(self.timeout.milliseconds)
        // Do not retry a refused connection: the caller wants to know.
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.httpVersion = .http1Only
        let client = HTTPClient(eventLoopGroup: MultiThreadedEventLoopGroup.singleton, configuration: configuration)
        let outcome: Result<(HTTPResponseStatus, ByteBuffer), any Error>
        do {
            let response = try await client.execute(request, timeout: .milliseconds(self.timeout.milliseconds))
            outcome = .success((response.status, try await response.body.collect(upTo: Self.longestAnswer)))
        } catch is NIOTooManyBytesError {
            outcome = .failure(
                CommandFailure(.failed, "the answer is longer than \(Self.longestAnswer >> 20) MiB; ask for less with --limit"))
        } catch {
            outcome = .failure(error)
        }
        try await client.shutdown()
        return try outcome.get()
    }

    /// The failure when no Earshot server answered in time.
    package func unreachable(_ error: any Error) -> CommandFailure {
        // A server that fails at TLS is running.
        let isTLS = error is NIOSSLError || error is BoringSSLError || error is NIOSSLExtraError
        let advice = isTLS ? "" : "\nIs the server running? Start it with `earshot serve`, or give --server URL."
        return CommandFailure(.unreachable, "cannot reach \(self.server): \(DisplayText.escaped(self.explain(error)))\(advice)")
    }

    /// Explains an error in plain text; errors of the libraries print as code.
    package func explain(_ error: any Error) -> String {
        switch error {
        case let error as NIOConnectionError:
            if let failure = error.connectionErrors.first { return self.explain(failure.error) }
            return error.dnsAError != nil || error.dnsAAAAError != nil ? "no such host" : "no connection"
        case let error as IOError: return Console.explain(error.errnoCode)
        case is SocketAddressError: return "no such host"
        case is ChannelError: return "no connection within \(self.timeout)"
        case let error as HTTPClientError where [.connectTimeout, .deadlineExceeded, .readTimeout].contains(error):
            return "no answer within \(self.timeout)"
        case let error as HTTPClientError where error == .remoteConnectionClosed: return "the connection was closed without an answer"
        case is HTTPParserError: return "the server at this address does not speak HTTP"
        case let error as NIOSSLExtraError where error == .failedToValidateHostname: return "its certificate is for another name"
        case is NIOSSLError, is BoringSSLError, is NIOSSLExtraError: return Self.explainTLS("\(error)")
        default: return "\(error)"
        }
    }

    /// Explains a TLS error by BoringSSL's text, which only the error's description contains.
    private static func explainTLS(_ text: String) -> String {
        if text.contains("CERTIFICATE_VERIFY_FAILED") { return "its certificate is not one that this machine trusts" }
        if text.contains("WRONG_VERSION_NUMBER") { return "it does not speak TLS; try http:// instead" }
        return "TLS failed: \(text)"
    }
}
