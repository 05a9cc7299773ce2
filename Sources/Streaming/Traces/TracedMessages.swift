import NIOCore
package import RTMP
package import Trace

/// RTMP messages as entries of traces: commands with redacted arguments, control messages with their numbers, others as headers.
extension TraceEntry {
    /// Larger commands are not decoded a second time for their trace. Bytes.
    private static let longestCommand = 4_096

    package static func message(_ message: Message, _ direction: TraceDirection, atMs: Int64) -> TraceEntry {
        switch message.type {
        case .commandAMF0, .commandAMF3: self.command(message, direction, atMs)
        case .setChunkSize, .abort, .acknowledgement, .userControl, .windowAcknowledgementSize, .setPeerBandwidth:
            self.control(message, direction, atMs)
        default:
            TraceEntry(
                atMs: atMs, direction, .message, "",
                header: TracedHeader(
                    timestamp: message.timestamp, type: message.type.rawValue, length: message.payload.readableBytes,
                    streamID: message.streamID))
        }
    }

    /// Whether messages of this type recur by themselves. They do not keep a quiet session's trace alive.
    package static func isHousekeeping(_ message: Message) -> Bool {
        switch message.type {
        case .acknowledgement: true
        // A ping and its answer (RTMP 1.0 §7.1.7).
        case .userControl: [6, 7].contains(message.payload.getInteger(at: message.payload.readerIndex, as: UInt16.self))
        default: false
        }
    }

    private static func command(_ message: Message, _ direction: TraceDirection, _ atMs: Int64) -> TraceEntry {
        let size = message.payload.readableBytes
        func unread(_ why: String) -> TraceEntry {
            TraceEntry(atMs: atMs, direction, .command, "unread", "\(size) bytes\(why)", streamID: message.streamID)
        }
        guard size > 0 else { return unread("") }
        guard size <= self.longestCommand else { return unread(", too long to show") }
        let command: Command
        do throws(RTMPError) { command = try Command(message, limits: AMFLimits()) } catch { return unread(", malformed") }
        let transaction = command.transaction >= 0 && command.transaction < 4_000_000_000 ? UInt32(command.transaction) : nil
        return TraceEntry(
            atMs: atMs, direction, .command, CommandText.name(command.name), CommandText.arguments(command, direction),
            streamID: message.streamID, transaction: transaction)
    }

    private static func control(_ message: Message, _ direction: TraceDirection, _ atMs: Int64) -> TraceEntry {
        let (name, text): (String, String)
        do throws(RTMPError) {
            switch try ControlMessage(message) {
            case .setChunkSize(let size): (name, text) = ("setChunkSize", "\(size)")
            case .abort(let chunkStream): (name, text) = ("abort", "chunk stream \(chunkStream)")
            case .acknowledgement(let bytes): (name, text) = ("acknowledgement", "\(bytes)")
            case .windowAcknowledgementSize(let size): (name, text) = ("windowAcknowledgementSize", "\(size)")
            case .setPeerBandwidth(let size, let limit): (name, text) = ("setPeerBandwidth", "\(size) \(limit)")
            case .userControl(let event): (name, text) = self.words(event)
            case nil: (name, text) = ("control", "type \(message.type.rawValue)")
            }
        } catch {
            (name, text) = ("control", "type \(message.type.rawValue), \(message.payload.readableBytes) bytes, malformed")
        }
        return TraceEntry(atMs: atMs, direction, .control, name, text)
    }

    private static func words(_ event: UserControlEvent) -> (String, String) {
        switch event {
        case .streamBegin(let id): ("streamBegin", "\(id)")
        case .streamEOF(let id): ("streamEOF", "\(id)")
        case .streamDry(let id): ("streamDry", "\(id)")
        case .setBufferLength(let id, let milliseconds): ("setBufferLength", "\(id), \(milliseconds) ms")
        case .streamIsRecorded(let id): ("streamIsRecorded", "\(id)")
        case .pingRequest(let value): ("pingRequest", "\(value)")
        case .pingResponse(let value): ("pingResponse", "\(value)")
        case .other(let event): ("userControl", "event \(event)")
        }
    }
}
