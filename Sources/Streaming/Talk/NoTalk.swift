package import Access
package import Relay
import Support

/// The talk channels of a server that has none.
package final class NoTalk: TalkGateway {
    private let mixes = StreamRegistry()
    private static let noTalk = AdmissionRefusal(reason: .noRoom, message: "This server has no talk channels.")

    package init() {}

    package func registry(of codec: TalkCodec) -> StreamRegistry { self.mixes }
    package func check(
        _ request: AdmissionRequest, push: (request: AdmissionRequest, pass: AdmissionPass)?
    ) -> Result<(pass: AdmissionPass, isCarried: Bool), AdmissionRefusal> { .failure(Self.noTalk) }
    package func resolved(_ name: TalkStreamName, _ request: AdmissionRequest) -> (name: TalkStreamName, request: AdmissionRequest) {
        (name, request)
    }
    package func admitTalker(
        _ name: TalkStreamName, _ request: AdmissionRequest, _ checked: AdmissionPass
    ) -> Result<PublishAdmission, AdmissionRefusal> { .failure(Self.noTalk) }
    package func admitListener(
        _ name: TalkStreamName, _ request: AdmissionRequest, _ checked: AdmissionPass, codec: TalkCodec, role: (any ConnectedRole)?
    ) -> Result<(pass: AdmissionPass, listening: any TalkListening), AdmissionRefusal> { .failure(Self.noTalk) }
}
