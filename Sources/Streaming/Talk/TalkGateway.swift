package import Access
package import Relay

/// The talk channels, as connections see them. Any thread.
package protocol TalkGateway: AnyObject, Sendable {
    /// Checks credential and address of a talk channel's name.
    ///
    /// `push` is a publish to the same room on the same connection. Its pass is valid here too, unless the name has a credential of its own; the
    /// app's credential, which is in every name's query, is the push's. `isCarried`: the push's pass was used.
    func check(
        _ request: AdmissionRequest, push: (request: AdmissionRequest, pass: AdmissionPass)?
    ) -> Result<(pass: AdmissionPass, isCarried: Bool), AdmissionRefusal>
    /// What a device's name stands for: the name in its room's channel, and the request for that. Both as they are for a room's own name. Credentials
    /// and hooks know the name that the client used. Not on an event loop.
    func resolved(_ name: TalkStreamName, _ request: AdmissionRequest) async -> (name: TalkStreamName, request: AdmissionRequest)
    /// Asks the hook, the room and its channel to admit a talker. Not on an event loop.
    func admitTalker(
        _ name: TalkStreamName, _ request: AdmissionRequest, _ checked: AdmissionPass
    ) async -> Result<PublishAdmission, AdmissionRefusal>
    /// Admits a listener in the same way; its mix exists then, or soon.
    func admitListener(
        _ name: TalkStreamName, _ request: AdmissionRequest, _ checked: AdmissionPass, codec: TalkCodec, role: (any ConnectedRole)?
    ) async -> Result<(pass: AdmissionPass, listening: any TalkListening), AdmissionRefusal>
    /// The registry that holds the mixes in this codec as streams.
    func registry(of codec: TalkCodec) -> StreamRegistry
}
