import AsyncHTTPClient
import CommandSupport
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Support

/// The doctor's HTTP client, shared by all requests of a run. Accepts every certificate, because other checks judge those.
struct DoctorHTTP: Sendable {
    private let client: HTTPClient

    /// Longest answer that is read as a whole, in bytes.
    private static let longest = 16 << 20

    init() {
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.timeout.connect = .seconds(3)
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.httpVersion = .http1Only
        configuration.tlsConfiguration = .makeClientConfiguration()
        configuration.tlsConfiguration?.certificateVerification = .none
        self.client = HTTPClient(eventLoopGroup: MultiThreadedEventLoopGroup.singleton, configuration: configuration)
    }

    func shutdown() async {
        // All requests have ended; what remains closes with the process.
        try? await self.client.shutdown()
    }

    struct Answer: Sendable {
        let status: UInt
        let headers: HTTPHeaders
        let body: ByteBuffer

        /// The server's message, or the status, for an answer that is not 200.
        var refusal: String {
            let answer = (try? JSONValue.answer(self.body.readableBytesView)) ?? .null
            let rule = answer["error"]["rule"].string.map { "[\($0)] " } ?? ""
            return answer["message"].string.map { DisplayText.escaped(rule + $0) } ?? "HTTP \(self.status)"
        }
    }

    /// The time limit covers the whole answer; the client's own limit covers only the head.
    func get(_ url: String, headers: HTTPHeaders = [:], within seconds: Int64 = 8) async throws -> Answer {
        try await withThrowingTaskGroup(of: Answer.self) { group in
            group.addTask { try await self.fetch(url, headers, seconds) }
            group.addTask {
                try await Task.sleep(for: .seconds(seconds))
                throw HTTPClientError.deadlineExceeded
            }
            defer { group.cancelAll() }
            guard let answer = try await group.next() else { throw CancellationError() }
            return answer
        }
    }

    /// Sends a body, or a DELETE without one. Returns the answer, whatever its status.
    func send(_ method: HTTPMethod, _ url: String, type: String? = nil, body: String = "") async throws -> Answer {
        var request = Self.request(url, type.map { ["Content-Type": $0] } ?? [:])
        request.method = method
        if !body.isEmpty { request.body = .bytes(ByteBuffer(string: body)) }
        let response = try await self.client.execute(request, timeout: .seconds(8))
        let answer = try await response.body.collect(upTo: 64 << 10)
        return Answer(status: response.status.code, headers: response.headers, body: answer)
    }

    private func fetch(_ url: String, _ headers: HTTPHeaders, _ seconds: Int64) async throws -> Answer {
        let response = try await self.client.execute(Self.request(url, headers), timeout: .seconds(seconds))
        let body = try await response.body.collect(upTo: Self.longest)
        return Answer(status: response.status.code, headers: response.headers, body: body)
    }

    /// Hands each piece of an endless body to `take`, until it returns false or the time is over. Returns the reason if the stream failed to begin or
    /// ended early; nil when `take` was satisfied.
    func stream(_ url: String, within seconds: Int64, _ take: (inout ByteBuffer) -> Bool) async -> String? {
        do {
            let response = try await self.client.execute(Self.request(url, [:]), timeout: .seconds(seconds))
            guard response.status == .ok else {
                let body = (try? await response.body.collect(upTo: 64 << 10)) ?? ByteBuffer()
                return Answer(status: response.status.code, headers: response.headers, body: body).refusal
            }
            for try await piece in response.body {
                var piece = piece
                if !take(&piece) { return nil }
            }
            return "the server ended the stream"
        } catch {
            return "\(Self.words(error)) (\(Self.origin(url)))"
        }
    }

    private static func request(_ url: String, _ headers: HTTPHeaders) -> HTTPClientRequest {
        var request = HTTPClientRequest(url: url)
        request.headers = headers
        request.headers.replaceOrAdd(name: "User-Agent", value: "earshot doctor")
        return request
    }

    /// "http://127.0.0.1:8080": without the path, since that holds a credential.
    static func origin(_ url: String) -> String { url.split(separator: "/", maxSplits: 3).prefix(2).joined(separator: "//") }

    static func words(_ error: any Error) -> String {
        switch error {
        case is CancellationError: "interrupted"
        case let error as HTTPClientError where [.connectTimeout, .deadlineExceeded, .readTimeout].contains(error): "no answer in time"
        case let error as HTTPClientError where error == .remoteConnectionClosed: "the connection was closed"
        default: ConnectFailure.words(error)
        }
    }
}
