import Rooms
import Testing

@Suite struct DeliveryStatusTests {
    @Test(arguments: [(nil, false), (199, false), (200, true), (204, true), (299, true), (300, false), (500, false)] as [(Int?, Bool)])
    func aStatusOf2xxMeansDelivered(_ status: Int?, _ isDelivered: Bool) {
        #expect(WebhookDelivery.isDelivered(status) == isDelivered)
    }
}
