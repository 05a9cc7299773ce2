import Foundation
import Synchronization
import TestSupport

/// A WebSocket client written from RFC 6455, to share no mistake with the server. Any thread.
package final class WebSocketClient: Sendable {
    /// A frame from the server.
    package struct Frame: Sendable {
        package let opcode: UInt8
        package let payload: [UInt8]
    }

    package let socket: SocketClient
    private let frames = Mutex<[Frame]>([])
    /// How many frames have been looked at for events, and these events' ids.
    private let events = Mutex((read: 0, ids: [Int]()))
    private let answersPings: Bool

    private init(_ socket: SocketClient, answersPings: Bool) {
        self.socket = socket
        self.answersPings = answersPings
    }

    package static func request(_ target: String, headers: [String] = []) -> String {
        ([
            "GET \(target) HTTP/1.1", "Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
        ] + headers).joined(separator: "\r\n") + "\r\n\r\n"
    }

    /// Opens the feed; throws with the answer's text when it is refused.
    package static func open(
        _ port: Int, _ target: String, token: String? = nil, receiveBuffer: Int? = nil, answersPings: Bool = true
    ) async throws -> WebSocketClient {
        let socket = try await SocketClient.open(port, receiveBuffer: receiveBuffer)
        return try await self.upgrade(socket, target, token: token, answersPings: answersPings)
    }

    package static func upgrade(
        _ socket: SocketClient, _ target: String, token: String? = nil, answersPings: Bool = true
    ) async throws -> WebSocketClient {
        try await socket.send(self.request(target, headers: token.map { ["Authorization: Bearer \($0)"] } ?? []))
        let (head, body) = try await socket.answer()
        guard head.hasPrefix("HTTP/1.1 101 ") else { throw TimedOut(description: "\(head)\r\n\r\n\(body)") }
        guard head.lowercased().contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=") else {
            throw TimedOut(description: "wrong accept: \(head)")
        }
        let client = WebSocketClient(socket, answersPings: answersPings)
        // Also while the test does something else: a server ends feeds that answer no pings. A wrong frame stays for the test to see.
        if answersPings { socket.afterReads { [weak client] in _ = try? client?.all } }
        return client
    }

    /// Everything received so far. Throws on a frame that a server must not send.
    package var all: [Frame] {
        get throws {
            try self.frames.withLock { frames in
                let bytes = self.socket.received
                var at = 0
                while let (frame, size) = try Self.parse(bytes[at...]) {
                    frames.append(frame)
                    at += size
                    if frame.opcode == 9, self.answersPings { self.socket.sendSoon(ClientFrame.bytes(10, frame.payload)) }
                }
                self.socket.removeFirst(at)
                return frames
            }
        }
    }

    private static func parse(_ bytes: ArraySlice<UInt8>) throws -> (Frame, Int)? {
        guard bytes.count >= 2 else { return nil }
        let start = bytes.startIndex
        guard bytes[start] & 0xF0 == 0x80, bytes[start + 1] & 0x80 == 0 else {
            throw TimedOut(description: "a server's frame begins \(bytes.prefix(2))")
        }
        var header = 2
        var length = Int(bytes[start + 1])
        if length >= 126 {
            let size = length == 126 ? 2 : 8
            guard bytes.count >= 2 + size else { return nil }
            length = bytes[start + 2..<start + 2 + size].reduce(0) { $0 << 8 | Int($1) }
            header += size
        }
        guard bytes.count >= header + length else { return nil }
        return (Frame(opcode: bytes[start] & 15, payload: Array(bytes[start + header..<start + header + length])), header + length)
    }

    /// The text messages so far, as JSON.
    package var messages: [JSON] {
        get throws {
            try self.all.filter { $0.opcode == 1 }.map { JSON(try JSONSerialization.jsonObject(with: Data($0.payload))) }
        }
    }

    /// The ids of the events received so far. Each is read once: tests wait for thousands.
    package var eventIDs: [Int] {
        get throws {
            let all = try self.all
            return try self.events.withLock { events in
                for frame in all.dropFirst(events.read) where frame.opcode == 1 {
                    let message = JSON(try JSONSerialization.jsonObject(with: Data(frame.payload)))
                    if message["type"].string == "event", let id = message["id"].int { events.ids.append(id) }
                }
                events.read = max(events.read, all.count)
                return events.ids
            }
        }
    }

    /// The code in the server's close frame.
    package var closeCode: Int? {
        get throws { try self.all.first { $0.opcode == 8 }.map { $0.payload.prefix(2).reduce(0) { $0 << 8 | Int($1) } } }
    }

    package func send(_ opcode: UInt8, _ payload: some Sequence<UInt8>, final: Bool = true) async throws {
        try await self.socket.send(ClientFrame.bytes(opcode, Array(payload), final: final))
    }

    package func send(_ text: String) async throws { try await self.send(1, text.utf8) }

    /// Sends a frame many times over in one write: as fast as can be, also on a machine with other work.
    package func send(_ opcode: UInt8, _ text: String, times: Int) async throws {
        try await self.socket.send((0..<times).flatMap { _ in ClientFrame.bytes(opcode, Array(text.utf8)) })
    }

    /// Waits for the first message of this type.
    package func message(_ type: String, within seconds: Double = 60) async throws -> JSON {
        var found: JSON?
        try await eventually("a \(type) message", within: seconds) {
            found = try self.messages.first { $0["type"].string == type }
            return found != nil
        }
        return try found.orThrow()
    }

    package func close() async { await self.socket.close() }
}
