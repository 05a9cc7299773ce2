import TestSupport
import Testing

extension RunningServer {
    /// Makes a link of the stream live/name to another server; returns its id. `more`: further members of the call's body.
    package func makeLink(_ direction: String, _ name: String, _ url: String, more: String = "") async throws -> Int {
        let made = try await self.call(
            "POST", "links", #"{"direction":"\#(direction)","app":"live","name":"\#(name)","url":"\#(url)"\#(more)}"#)
        #expect(made.status == 201, "\(made.text)")
        return try made.json()["data"]["linkId"].int.orThrow()
    }
}
