import NIOCore
import RTMP

extension FuzzTarget {
    /// Command and control messages as sessions read them. They survive encoding and decoding.
    static let command = FuzzTarget("command", maxLength: 2_048) { input in
        var input = input
        let type = MessageType(rawValue: input.byte())
        let message = Message(type: type, streamID: 1, payload: ByteBuffer(bytes: input.rest))
        if type == .commandAMF0 || type == .commandAMF3 { checkCommand(message) } else { checkControl(message) }
    }
}

private func checkCommand(_ message: Message) {
    let command: Command
    do throws(RTMPError) {
        command = try Command(message, limits: AMFLimits())
    } catch {
        guard case .malformedCommand = error else { fatalError("\(error)") }
        return
    }
    do throws(RTMPError) {
        let again = try Command(command.message(streamID: 1, amf3: message.type == .commandAMF3), limits: AMFLimits())
        expect(again.name == command.name && again.transaction.bitPattern == command.transaction.bitPattern, "another command")
        expect(again.object == command.object && again.arguments == command.arguments, "other arguments")
    } catch {
        fatalError("what was written: \(error)")
    }
}

private func checkControl(_ message: Message) {
    do throws(RTMPError) {
        guard let control = try ControlMessage(message) else { return }
        // Only the number of an unknown event is kept.
        if case .userControl(.other) = control { return }
        let again = try ControlMessage(control.message)
        expect(again == control, "\(control), then \(String(describing: again))")
    } catch {
        guard case .shortControlMessage = error else { fatalError("\(error)") }
    }
}
