package import NIOCore

/// An action that the session requests. The connection drains these after every input and performs them in order.
package enum ServerSessionOutput: Sendable, Equatable {
    /// Encode and write this control or command message.
    case send(Message)
    /// From the next message on, encode chunks of this many bytes.
    case setChunkSize(Int)
    /// Decide with `acceptConnect` or `rejectConnect`.
    case connect(ConnectRequest)
    /// Decide with `acceptPublish` or `rejectPublish`.
    case publish(streamID: UInt32, StreamAddress)
    /// Decide with `acceptPlay` or `rejectPlay`.
    case play(streamID: UInt32, StreamAddress)
    /// The client ended its publish by a command (FCUnpublish, closeStream, deleteStream, close).
    case unpublish(streamID: UInt32)
    /// The client ended its play.
    case stop(streamID: UInt32)
    /// A data message to relay; AMF0, without its `@setDataFrame`.
    case data(streamID: UInt32, timestamp: UInt32, payload: ByteBuffer)
    /// The publisher withdrew its metadata (`@clearDataFrame`).
    case clearData(streamID: UInt32)
    case pause(streamID: UInt32, Bool)
    case receiveAudio(streamID: UInt32, Bool)
    case receiveVideo(streamID: UInt32, Bool)
    /// A pong with the value of our ping.
    case pong(UInt32)
    /// The app or stream name is invalid. The client's error status was sent before: close once that is written.
    case badName(StreamAddressError)
}

/// A queue of outputs to perform, in order.
struct SessionOutputs<Output> {
    private var waiting: [Output] = []
    private var nextIndex = 0

    mutating func append(_ output: Output) { self.waiting.append(output) }

    /// Removes the next output; `nil` if there is none. Frees an empty queue's storage: most connections are idle.
    mutating func next() -> Output? {
        guard self.nextIndex < self.waiting.count else {
            self.waiting.removeAll(keepingCapacity: false)
            self.nextIndex = 0
            return nil
        }
        defer { self.nextIndex += 1 }
        return self.waiting[self.nextIndex]
    }
}
